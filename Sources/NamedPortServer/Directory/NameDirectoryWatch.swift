// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Reports which files of the directory of names have changed, also when that directory comes and goes. Of a directory
// itself inotify reports at once only that it was moved: it reports the removal when no process has the directory open
// any more, and many have. So besides the directory, the path to it (`PathWalk`) is watched: each directory on it for
// its own move, and, where the next name may go away, for what happens to that name: just above the directory, and
// where the name is a symbolic link. While the directory is not there, the deepest one that is there is watched for the
// next name on the path.
//
// A watch is added first and the directory is read afterwards, so no change falls between the two.

import PortCLibrary
import MessagePort
import PortSystem
import Synchronization

/// Reports when the directory of names must be read again.
struct NameDirectoryWatch: ~Copyable, Sendable {
    /// What may have changed.
    enum Changes: Hashable, Sendable {
        /// The files with these names, in the order of their last change. Other files stand for no name.
        case files([String])
        /// Everything: the directory was replaced, has appeared or is gone; or there were more reports than one call
        /// reads, or than the kernel queues.
        case everything
    }

    /// Where reports of changes come from.
    enum Kernel: Sendable {
        case reports(Kept<DirectoryWatch>)
        /// From nowhere: an empty set, and how often to read everything.
        case interval(Kept<EpollSet>, IntervalLooks, Duration)
    }

    final class Kept<Value: ~Copyable & Sendable>: Sendable {
        let value: Value  // immutable

        init(_ value: consuming Value) {
            self.value = value
        }
    }

    private(set) var kernel: Kernel
    /// The watch that reported changes until the kernel gave no watch any more: callers wait on its descriptor.
    private var replaced: Kept<DirectoryWatch>?
    private let looks: IntervalLooks?
    /// When to read the directory although the descriptor is not readable; never while the kernel reports changes.
    private(set) var nextLook = MonotonicInstant.distantFuture
    /// The directory above that of names, as a path.
    let path: String
    /// Whether sockets that a supervisor declares are reported too, by the same file names.
    let followsDeclared: Bool
    /// Whether the directory may be a shared one.
    let mayBeShared: Bool
    /// For each watch on the path, the names in that directory that lead on.
    var way: [CInt: Set<[UInt8]>] = [:]
    var watch: CInt = -1
    /// The watch of the declared sockets.
    var declared: CInt = -1
    /// The directory of names; nil while it is not there.
    var names: TrustedDirectory?

    /// Begins to watch.
    ///
    /// - Parameters:
    ///   - path: the directory above that of names: an absolute path.
    ///   - followsDeclared: whether to report declared sockets too.
    ///   - mayBeShared: whether the directory may be a shared one.
    ///   - looks: whether it may scan at an interval where the kernel gives no watch.
    /// - Returns: the watch, which reports what changes from now on.
    /// - Throws: `watchLimit`, `descriptorLimit`, `directoryUntrusted`, `systemCallFailed`.
    static func begin(
        at path: String, followsDeclared: Bool = false, mayBeShared: Bool = false, looks: IntervalLooks? = nil
    ) throws(PortError) -> NameDirectoryWatch {
        do throws(PortError) {
            var watch = NameDirectoryWatch(
                .reports(Kept(try makeWatch())), path, followsDeclared, mayBeShared, looks)
            try watch.begin()
            return watch
        } catch {
            guard error.code == .watchLimit, let looks, let interval = looks.interval else { throw error }
            var watch = NameDirectoryWatch(
                .interval(Kept(try nothing()), looks, interval), path, followsDeclared, mayBeShared, looks)
            watch.nextLook = .now
            return watch
        }
    }

    /// A descriptor that never becomes readable.
    private static func nothing() throws(PortError) -> EpollSet {
        do throws(SystemError) {
            return try EpollSet()
        } catch {
            throw PortError(error)
        }
    }

    private init(
        _ kernel: Kernel, _ path: String, _ followsDeclared: Bool, _ mayBeShared: Bool, _ looks: IntervalLooks?
    ) {
        self.looks = looks
        self.kernel = kernel
        self.path = path
        self.followsDeclared = followsDeclared
        self.mayBeShared = mayBeShared
    }

    /// The descriptor to wait on: readable while changes wait.
    var raw: CInt {
        if let replaced { return replaced.value.raw }
        return switch kernel {
        case .reports(let watch): watch.value.raw
        case .interval(let nothing, _, _): nothing.value.raw
        }
    }

    /// How often one call reads at most: enough for as many reports as the kernel queues. The rest waits for the next
    /// call, so that a process that makes changes as fast as they are read cannot hold a caller here.
    private static let readLimit = 32

    /// Returns what has changed since the last call. Never waits.
    ///
    /// - Throws: as ``begin(at:followsDeclared:)``; then it begins anew at the next call, with everything.
    mutating func changes() throws(PortError) -> Changes {
        do throws(PortError) {
            return try reportedChanges()
        } catch {
            guard error.code == .watchLimit, case .reports(let watch) = kernel, let looks, let interval = looks.interval
            else { throw error }
            (kernel, replaced) = (.interval(Kept(try Self.nothing()), looks, interval), watch)
            nextLook = .now
            return try reportedChanges()
        }
    }

    private mutating func reportedChanges() throws(PortError) -> Changes {
        if case .interval(_, let looks, let interval) = kernel {
            // Its further reports mean nothing, and would end each wait.
            if let replaced { _ = try? replaced.value.reports() }
            guard nextLook <= .now else { return .files([]) }
            looks.count.add(1, ordering: .relaxed)
            nextLook = .after(interval)
            names = try openNames()
            return .everything
        }
        var files: [String: Int] = [:]
        var count = 0
        var hasLost = false
        for round in 1...Self.readLimit {
            let reports = try read()
            if reports.isEmpty { break }
            if round == Self.readLimit { hasLost = true }
            for report in reports {
                count += 1
                if report.events.contains(.overflow) { hasLost = true }
                if report.watch == watch || report.watch == declared, !report.name.isEmpty {
                    if PortName(fileName: report.name) != nil { files[report.name] = count }
                } else if leadsElsewhere(report) {
                    try begin()
                    hasLost = true
                }
            }
        }
        if watch == -1 && way.isEmpty {
            try begin()  // the last attempt failed
            hasLost = true
        }
        return hasLost ? .everything : .files(files.sorted { $0.value < $1.value }.map(\.key))
    }

    /// Makes the next call read the directory although the interval, where there is one, has not passed.
    mutating func lookNow() {
        if nextLook != .distantFuture { nextLook = .now }
    }

    /// Whether the path to the directory may lead elsewhere since this report.
    private func leadsElsewhere(_ report: DirectoryReport) -> Bool {
        if report.watch == watch { return true }
        guard let names = way[report.watch] else { return false }
        return report.name.isEmpty || names.contains(Array(report.name.utf8))
    }

    private func read() throws(PortError) -> [DirectoryReport] {
        do throws(SystemError) {
            guard case .reports(let watch) = kernel else { return [] }
            return try watch.value.reports()
        } catch {
            throw PortError(error)
        }
    }

    /// The kernel gives the same error when no descriptor and when no inotify instance is left.
    private static func makeWatch() throws(PortError) -> DirectoryWatch {
        do throws(SystemError) {
            return try DirectoryWatch()
        } catch {
            let isWatchLimit = error.isRefusal || error.code == EMFILE && (try? EpollSet()) != nil
            if isWatchLimit { throw PortError(.watchLimit, system: error) }
            throw PortError(error)
        }
    }
}
