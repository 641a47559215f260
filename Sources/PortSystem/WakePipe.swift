// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// How one process wakes a loop of another: a pipe(2), made by the reader, of which one writer has the other end. A byte in it is
// an edge for the reader's epoll set, and means nothing else, so it is read out only now and then.
//
// The two ends are two open files. The writer opens its end anew: so nobody else can change its flags, it never waits for
// room, and it reads the pipe, too, by which no signal is sent when the reader has gone.

import CPortShims
import PortCLibrary
import Synchronization

/// The reading end of a wake pipe.
package final class WakePipe: Sendable {
    private let reading: FileDescriptor  // immutable

    /// The descriptor to watch for edges.
    package var rawValue: CInt { reading.raw }

    private init(_ reading: consuming FileDescriptor) {
        self.reading = reading
    }

    /// Makes a pipe.
    ///
    /// - Returns: the reading end, and the writing end, which goes to one writer.
    /// - Throws: EMFILE, ENFILE, ENOMEM; EPERM where the kernel does not let its mode be changed.
    package static func make() throws(SystemError) -> (pipe: WakePipe, writing: SharedDescriptor) {
        let ends = try sysPipe()
        let writing = SharedDescriptor(owning: ends.writing)
        let pipe = WakePipe(FileDescriptor(owning: ends.reading))
        // Another user who got the descriptor could not open the pipe anew otherwise.
        _ = try retrying(.fchmod) { fchmod(writing.rawValue, 0o666) }
        return (pipe, writing)
    }

    /// Reads out what lies in the pipe, up to 16 KiB: a writer that writes on and on keeps nobody.
    package func drain() {
        for _ in 0..<32 {
            guard let count = try? sysDiscard(rawValue, 512), count == 512 else { return }
        }
    }

    /// Whether a byte gives an edge also where others lie unread in the pipe. It may not before Linux 5.14: a pipe is to be
    /// drained after each edge there.
    package static var hasEdgeForEachByte: Bool {
        let known = edges.load(ordering: .relaxed)
        if known != .unknown { return known == .forEachByte }
        // Without a descriptor for the question, it is asked again the next time.
        guard let answer = try? asksForEdges() else { return false }
        edges.store(answer ? .forEachByte : .forSome, ordering: .relaxed)
        return answer
    }

    private enum Edges: UInt8, AtomicRepresentable {
        case unknown, forEachByte, forSome
    }

    private static let edges = Atomic(Edges.unknown)

    private static func asksForEdges() throws(SystemError) -> Bool {
        let (pipe, writing) = try make()
        let set = try EpollSet()
        try set.add(pipe.rawValue, [.readable, .edgeTriggered], key: 1)
        for _ in 0..<2 {
            try sysWriteByte(writing.rawValue)
            if set.wait(until: .distantPast).isEmpty { return false }
        }
        return true
    }
}

/// The writing end of a wake pipe that another process made.
package final class PipeWaker: Sendable {
    private let writing: FileDescriptor  // immutable

    /// Opens a pipe anew that another process has sent; nil when it is no pipe without a name, or cannot be opened: there is no
    /// /proc, or no descriptor left.
    ///
    /// - Parameter received: what was sent.
    package init?(_ received: SharedDescriptor) {
        let path = "/proc/self/fd/\(received.rawValue)"
        // The link names the kind of file, and asks no file system, which another process might serve.
        guard let target = try? sysReadLink(path), target.hasPrefix("pipe:["),
            let writing = try? sysOpen(path, .pipe)
        else { return nil }
        self.writing = writing
    }

    /// Writes a byte. Never waits for room.
    ///
    /// - Returns: false when there is no room, or the kernel refuses.
    package func wake() -> Bool {
        (try? sysWriteByte(writing.raw)) != nil
    }
}

/// Makes a pipe, whose ends do not wait, close-on-exec.
///
/// - Throws: EMFILE, ENFILE.
func sysPipe() throws(SystemError) -> (reading: CInt, writing: CInt) {
    var ends: (CInt, CInt) = (-1, -1)
    _ = try retrying(.pipe) {
        unsafe withUnsafeMutableBytes(of: &ends) {
            unsafe shim_pipe($0.assumingMemoryBound(to: CInt.self).baseAddress)
        }
    }
    return ends
}

/// Writes a byte.
///
/// - Throws: EAGAIN when there is no room for it.
private func sysWriteByte(_ descriptor: CInt) throws(SystemError) {
    _ = try retrying(.write) { shim_write_byte(descriptor) }
}
