// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort
import PortCLibrary
import PortSystem
import Synchronization

// Reports which files of the directory of names have changed, also when that directory comes and goes. Of a directory
// itself inotify reports at once only that it was moved: it reports the removal when no process has the directory open
// any more, and many have. So besides the directory, the path to it (`PathWalk`) is watched: each directory on it for
// its own move, and, where the next name may go away, for what happens to that name: just above the directory, and
// where the name is a symbolic link. While the directory is not there, the deepest one that is there is watched for the
// next name on the path.
//
// A watch is added first and the directory is read afterwards, so no change falls between the two.

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

    /// What reports changes, as long as the kernel gives watches; nil when it gave none at the beginning.
    private let queue: Shared<DirectoryWatch>?
    /// Without a queue, a set that is never readable.
    private var nothing: Shared<EpollSet>?
    /// Whether it may scan at an interval where the kernel gives no watch.
    private let scanning: IntervalScans?
    /// How often to read everything; nil while the kernel reports changes.
    private var interval: Duration?
    /// When to read the directory although the descriptor is not readable; never while the kernel reports changes.
    private(set) var nextCheck = MonotonicInstant.distantFuture
    /// The directory above that of names, as an absolute path.
    let path: String
    /// Whether sockets that a supervisor declares are reported too, by the same file names.
    let followsDeclared: Bool
    /// Whether the directory may be a shared one.
    let mayBeShared: Bool
    /// For each watch on the path, the names in that directory that lead on.
    var namesOnPath: [CInt: Set<[UInt8]>] = [:]
    /// The watch of the directory of names, and that of the declared sockets; -1 for none.
    var watchOfNames: CInt = -1
    var watchOfDeclared: CInt = -1
    /// The directory of names; nil while it is not there.
    var names: TrustedDirectory?

    /// Begins to report what changes from now on.
    ///
    /// - Throws: `watchLimit`, `descriptorLimit`, `directoryUntrusted`, `systemCallFailed`.
    static func begin(
        at path: String, followsDeclared: Bool = false, mayBeShared: Bool = false, scanning: IntervalScans? = nil
    ) throws(PortError) -> NameDirectoryWatch {
        do throws(PortError) {
            var watch = NameDirectoryWatch(
                queue: Shared(try makeQueue()), scanning: scanning, path: path, followsDeclared: followsDeclared,
                mayBeShared: mayBeShared)
            try watch.begin()
            return watch
        } catch {
            guard error.code == .watchLimit, let interval = scanning?.interval else { throw error }
            return NameDirectoryWatch(
                queue: nil, nothing: Shared(try PortError.converting(EpollSet())), scanning: scanning,
                interval: interval, nextCheck: .now, path: path, followsDeclared: followsDeclared,
                mayBeShared: mayBeShared)
        }
    }

    /// The descriptor to wait on, the same always: readable while changes wait.
    var raw: CInt { queue?.value.raw ?? nothing?.value.raw ?? -1 }

    /// Returns what has changed since the last call. Never waits.
    ///
    /// - Throws: as ``begin(at:followsDeclared:)``; then it begins anew at the next call, with everything.
    mutating func changes() throws(PortError) -> Changes {
        if let interval { return try scan(interval) }
        do throws(PortError) {
            return try reportedChanges()
        } catch {
            guard error.code == .watchLimit, let interval = scanning?.interval else { throw error }
            (self.interval, nextCheck) = (interval, .now)
            return try scan(interval)
        }
    }

    /// Reports everything, if the interval has passed.
    private mutating func scan(_ interval: Duration) throws(PortError) -> Changes {
        // Further reports of the kernel mean nothing, and would end each wait.
        if let queue { _ = try? queue.value.reports() }
        guard nextCheck <= .now else { return .files([]) }
        scanning?.count.add(1, ordering: .relaxed)
        nextCheck = .after(interval)
        names = try openNames()
        return .everything
    }

    private mutating func reportedChanges() throws(PortError) -> Changes {
        guard let queue else { return .everything }
        var files: [String: Int] = [:]
        var count = 0
        var hasLost = false
        for round in 1...Tuning.readLimit {
            let reports = try PortError.converting(queue.value.reports())
            if reports.isEmpty { break }
            if round == Tuning.readLimit { hasLost = true }
            for report in reports {
                count += 1
                if report.events.contains(.overflow) { hasLost = true }
                if report.watch == watchOfNames || report.watch == watchOfDeclared, !report.name.isEmpty {
                    if PortName(fileName: report.name) != nil { files[report.name] = count }
                } else if leadsElsewhere(report) {
                    try begin()
                    hasLost = true
                }
            }
        }
        if watchOfNames == -1 && namesOnPath.isEmpty {
            try begin()  // the last attempt failed
            hasLost = true
        }
        return hasLost ? .everything : .files(files.sorted { $0.value < $1.value }.map(\.key))
    }

    /// Makes the next call read the directory although the interval, where there is one, has not passed.
    mutating func checkNow() {
        if nextCheck != .distantFuture { nextCheck = .now }
    }

    /// Whether the path to the directory may lead elsewhere since this report.
    private func leadsElsewhere(_ report: DirectoryReport) -> Bool {
        if report.watch == watchOfNames { return true }
        guard let names = namesOnPath[report.watch] else { return false }
        return report.name.isEmpty || names.contains(Array(report.name.utf8))
    }

    /// The kernel gives the same error when no descriptor and when no inotify instance is left.
    private static func makeQueue() throws(PortError) -> DirectoryWatch {
        do throws(SystemError) {
            return try DirectoryWatch()
        } catch {
            let isWatchLimit = error.isRefusal || error.code == EMFILE && (try? EpollSet()) != nil
            if isWatchLimit { throw PortError(.watchLimit, system: error) }
            throw PortError(error)
        }
    }
}

// MARK: - Beginning

extension NameDirectoryWatch {
    private static let atName: DirectoryEvents = [
        .created, .deleted, .modified, .closedAfterWriting, .movedIn, .movedOut, .selfMoved, .attributes,
    ]
    private static let onPath: DirectoryEvents = [.created, .deleted, .movedIn, .movedOut, .selfMoved, .attributes]
    private static let atDeclared: DirectoryEvents = [.created, .movedIn, .attributes]

    /// Watches the directory that is there now, and the path to it.
    mutating func begin() throws(PortError) {
        do throws(PortError) {
            for _ in 0..<Tuning.beginLimit {
                end()
                if try beginIfStill() { return }
            }
            throw PortError(SystemError(ESTALE), subject: .path(path))
        } catch {
            end()
            throw error
        }
    }

    private mutating func end() {
        for number in [watchOfNames, watchOfDeclared] + namesOnPath.keys where number != -1 {
            queue?.value.remove(number)
        }
        (watchOfNames, watchOfDeclared) = (-1, -1)
        namesOnPath = [:]
        names = nil
    }

    /// - Returns: false when something changed meanwhile.
    private mutating func beginIfStill() throws(PortError) -> Bool {
        let directory = try openNames()
        let seen = try resolve()
        if let directory {
            watchOfNames = try add("/proc/self/fd/\(directory.raw)", Self.atName) ?? -1
            // By its path where /proc is not mounted; the check below shows whether that still leads there.
            if watchOfNames == -1 { watchOfNames = try add(directory.path, Self.atName) ?? -1 }
        }
        var events: [CInt: DirectoryEvents] = [:]
        for step in seen.steps { try addOnPath(step, isOptional: step.directory != seen.last, &events) }
        if let top = seen.parent, followsDeclared {
            try addOnPath(
                PathWalk.Step(directory: top, names: [Array("declared".utf8)], mayChange: true), isOptional: false,
                &events)
            watchOfDeclared = try add(top + "/declared", Self.atDeclared) ?? -1
        }
        // Did it change before the watches were there?
        guard try resolve() == seen else { return false }
        guard let directory else { return !seen.isWhole }
        names = directory
        return watchOfNames != -1 && directory.checkCurrent()
    }

    private func openNames() throws(PortError) -> TrustedDirectory? {
        try .existing("names", in: path, mayBeShared: mayBeShared)
    }

    private func resolve() throws(PortError) -> PathWalk {
        do throws(SystemError) {
            return try PathWalk(to: path + "/names")
        } catch {
            throw PortError(error, subject: .path(path))
        }
    }

    /// Watches one directory on the path, and records in `events` what each watch reports: two paths may lead to one
    /// directory.
    private mutating func addOnPath(
        _ step: PathWalk.Step, isOptional: Bool, _ events: inout [CInt: DirectoryEvents]
    ) throws(PortError) {
        do throws(PortError) {
            let wanted = step.mayChange ? Self.onPath : .selfMoved
            guard let watch = try add(step.directory, wanted) else { return }
            if let before = events[watch], before.union(wanted) != wanted {
                _ = try add(step.directory, before.union(wanted))
            }
            events[watch, default: []].formUnion(wanted)
            namesOnPath[watch, default: []].formUnion(step.names)
        } catch {
            // A directory that may be searched and not read reports nothing: a move of it goes unnoticed.
            if !isOptional || error.systemError?.code != EACCES { throw error }
        }
    }

    /// - Returns: nil when the directory is not there.
    private func add(_ path: String, _ events: DirectoryEvents) throws(PortError) -> CInt? {
        do throws(SystemError) {
            return try queue?.value.add(path, events)
        } catch {
            if error.isMissingPath { return nil }
            // An error for one path may concern its file system only.
            if error.code == ENOSPC || error.isRefusal && (try? SystemProbe.directoryWatch()) == nil {
                throw PortError(.watchLimit, system: error, subject: .path(path))
            }
            throw PortError(error, subject: .path(path))
        }
    }
}

extension TrustedDirectory {
    /// A directory below the one at a path; nil when either is not there.
    static func existing(
        _ name: String, in path: String, mayBeShared: Bool
    ) throws(PortError) -> TrustedDirectory? {
        do throws(PortError) {
            return try open(path: path, makes: false, mayBeShared: mayBeShared).subdirectory(name, makes: false)
        } catch {
            if error.systemError?.isMissingPath == true { return nil }
            throw error
        }
    }
}

extension SystemError {
    /// Whether nothing is at a path.
    fileprivate var isMissingPath: Bool { code == ENOENT || code == ENOTDIR }
}

// The path to a directory as the kernel resolves it: from the root, one name after the other, through symbolic links,
// "." and "..". Each directory on it can be moved; a link can be replaced; and the last directory that is there can
// gain or lose the next name.

/// Which directories a path leads through, and by which names.
struct PathWalk: Equatable, Sendable {
    /// A directory on the path.
    struct Step: Equatable, Sendable {
        /// Its path, without links.
        let directory: String
        /// The names in it that lead on, as bytes: texts that are equal may be different names.
        var names: Set<[UInt8]> = []
        /// Whether these names may go, come, or lead elsewhere while the directory stays.
        var mayChange = false

        static func == (left: Step, right: Step) -> Bool {
            left.directory.utf8.elementsEqual(right.directory.utf8) && left.names == right.names
                && left.mayChange == right.mayChange
        }
    }

    /// The directories, each once.
    private(set) var steps: [Step] = []
    /// The directory in which the last name of the path is, or would be; nil when the path ends before it.
    private(set) var parent: String?
    /// Whether there is something at the path.
    private(set) var isWhole = false
    /// The last directory that is there: the next name is missing in it, or is the last one.
    private(set) var last = "/"

    /// As many links as the kernel follows.
    private static let linkLimit = 40

    /// Resolves a path. Its last two names are not followed when they are links: what is there is not trusted then.
    init(to path: String) throws(SystemError) {
        var rest = Self.names(of: path)
        var linkCount = 0
        while let name = rest.popLast() {
            if name == "." { continue }
            if name == ".." {
                noteStep(last)
                noteNameOfLast()
                last = Self.parent(of: last)
                continue
            }
            let next = (last == "/" ? "" : last) + "/" + name
            if rest.isEmpty { parent = last }
            let (isThere, target) = try Self.resolve(at: next)
            noteStep(last, name, mayChange: rest.isEmpty || !isThere || target != nil)
            guard isThere else {
                noteNameOfLast()
                return
            }
            guard let target, rest.count > 1 else {
                if !rest.isEmpty { last = next }
                continue
            }
            linkCount += 1
            if linkCount > Self.linkLimit { throw SystemError(ELOOP) }
            if target.utf8.first == UInt8(ascii: "/") { last = "/" }
            rest += Self.names(of: target)
        }
        isWhole = true
    }

    /// Whether something is there, and where it leads when it is a link.
    private static func resolve(at path: String) throws(SystemError) -> (isThere: Bool, target: String?) {
        do throws(SystemError) {
            return (true, try sysReadLink(path))
        } catch {
            if error.isMissingPath { return (false, nil) }
            throw error
        }
    }

    private mutating func noteStep(_ directory: String, _ name: String? = nil, mayChange: Bool = false) {
        let known = steps.firstIndex { $0.directory.utf8.elementsEqual(directory.utf8) }
        if known == nil { steps.append(Step(directory: directory)) }
        let index = known ?? steps.count - 1
        if let name { steps[index].names.insert(Array(name.utf8)) }
        if mayChange { steps[index].mayChange = true }
    }

    /// Notes the name of the last directory, which may be removed: an empty directory can be.
    private mutating func noteNameOfLast() {
        guard last != "/", let slash = last.utf8.lastIndex(of: UInt8(ascii: "/")) else { return }
        noteStep(Self.parent(of: last), String(last[last.utf8.index(after: slash)...]), mayChange: true)
    }

    private static func parent(of directory: String) -> String {
        guard let slash = directory.utf8.lastIndex(of: UInt8(ascii: "/")), slash != directory.startIndex else {
            return "/"
        }
        return String(directory[..<slash])
    }

    /// The names of a path, the first one last.
    private static func names(of path: String) -> [String] {
        path.utf8.split(separator: UInt8(ascii: "/")).reversed().map { String(decoding: $0, as: UTF8.self) }
    }
}
