// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Changes of directories, as inotify(7) reports them.

import CPortShims
import PortCLibrary

/// What happens in, or to, a directory.
package struct DirectoryEvents: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// A file or directory was created in it.
    package static let created = DirectoryEvents(rawValue: SHIM_IN_CREATE)
    /// A name was removed from it.
    package static let deleted = DirectoryEvents(rawValue: SHIM_IN_DELETE)
    /// A file in it was written or truncated.
    package static let modified = DirectoryEvents(rawValue: SHIM_IN_MODIFY)
    /// A file in it that was open for writing was closed, also because its process ended. Its lock may still be held.
    package static let closedAfterWriting = DirectoryEvents(rawValue: SHIM_IN_CLOSE_WRITE)
    /// Something was moved into it.
    package static let movedIn = DirectoryEvents(rawValue: SHIM_IN_MOVED_TO)
    /// Something was moved out of it.
    package static let movedOut = DirectoryEvents(rawValue: SHIM_IN_MOVED_FROM)
    /// The directory itself was moved. A move of a parent directory is not reported.
    package static let selfMoved = DirectoryEvents(rawValue: SHIM_IN_MOVE_SELF)
    /// The directory itself is gone; reported only when no process has it open.
    package static let selfDeleted = DirectoryEvents(rawValue: SHIM_IN_DELETE_SELF)
    /// Its mode or owner, or those of a file in it, were changed.
    package static let attributes = DirectoryEvents(rawValue: SHIM_IN_ATTRIB)
    /// Reported only: the kernel has dropped reports.
    package static let overflow = DirectoryEvents(rawValue: SHIM_IN_Q_OVERFLOW)
}

package struct DirectoryReport: Hashable, Sendable {
    /// The number of the watch, as `add` gave it; -1 for an overflow.
    package var watch: CInt
    package var events: DirectoryEvents
    /// The name in the directory that it happened to; empty for the directory itself.
    package var name: String

    package init(watch: CInt, events: DirectoryEvents, name: String = "") {
        self.watch = watch
        self.events = events
        self.name = name
    }
}

/// A non-blocking queue of changes of watched directories.
package struct DirectoryWatch: ~Copyable, Sendable {
    private let descriptor: FileDescriptor
    /// The bytes of `struct inotify_event` before its name.
    private static let headLength = 16

    /// Makes a queue without watches.
    ///
    /// - Throws: EMFILE when this process has no descriptor left, or the user no inotify instance
    ///   (`fs.inotify.max_user_instances`); the refusal.
    package init() throws(SystemError) {
        let number = try Refusals.directoryWatch.remember { () throws(SystemError) in
            try retrying(.inotify_init) { shim_inotify_create() }
        }
        descriptor = FileDescriptor(owning: number)
    }

    /// The descriptor to wait on: readable while reports are queued.
    package var raw: CInt { descriptor.raw }

    /// Watches a directory. Symbolic links are followed.
    ///
    /// - Returns: the watch's number, which is never reused for another; the same as before for a directory that is
    ///   already watched, whose events are replaced.
    /// - Throws: ENOENT; ENOTDIR; EACCES when this user may not read it; ENOSPC when the user has no watch left
    ///   (`fs.inotify.max_user_watches`); the refusal, which `Refusals.directoryWatch` then has.
    package func add(_ path: String, _ events: DirectoryEvents) throws(SystemError) -> CInt {
        // An error for one path may concern its file system only; every user may read this directory.
        let isRefusal = { (error: SystemError) in
            error.isRefusal && isRefused { () throws(SystemError) in try DirectoryWatch().request("/", .selfDeleted) }
        }
        return try Refusals.directoryWatch.remember(isRefusal) { () throws(SystemError) in try request(path, events) }
    }

    private func request(_ path: String, _ events: DirectoryEvents) throws(SystemError) -> CInt {
        try retrying(.inotify_add_watch) {
            unsafe shim_inotify_add(descriptor.raw, path, events.rawValue | SHIM_IN_ONLYDIR)
        }
    }

    /// Ends a watch. One that has already ended is no error.
    package func remove(_ watch: CInt) {
        _ = try? retrying(.inotify_rm_watch) { shim_inotify_remove(descriptor.raw, watch) }
    }

    /// What has happened since the last call, oldest first, at most the result of one read.
    ///
    /// - Returns: the reports; none when there are none now.
    package func reports() throws(SystemError) -> [DirectoryReport] {
        guard let bytes = try sysRead(descriptor.raw, capacity: Tuning.directoryReportSize) else { return [] }
        return Self.decode(bytes[...])
    }

    /// Decodes a sequence of `struct inotify_event`; an incomplete one at the end is left out.
    static func decode(_ bytes: ArraySlice<UInt8>) -> [DirectoryReport] {
        func word(_ offset: Int) -> UInt32 {
            (0..<4).reduce(0) {
                $0 | UInt32(bytes[offset + $1]) << UInt32(8 * (UInt32(1).littleEndian == 1 ? $1 : 3 - $1))
            }
        }
        var reports: [DirectoryReport] = []
        var start = bytes.startIndex
        while bytes.endIndex - start >= headLength {
            let nameStart = start + headLength
            let end = nameStart + Int(word(start + 12))
            guard end <= bytes.endIndex else { break }
            let name = bytes[nameStart..<end].prefix { $0 != 0 }
            reports.append(
                DirectoryReport(
                    watch: CInt(bitPattern: word(start)), events: DirectoryEvents(rawValue: word(start + 4)),
                    name: String(decoding: name, as: UTF8.self)))
            start = end
        }
        return reports
    }
}
