// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort
import PortSystem
import Synchronization

// A watch of names consists of the changes of the directory, one process descriptor for each other process that holds
// names, and the table of what was reported. See Docs/Decisions/0010-watches-of-names.md.

/// Reports which names came and went since the last call. It buffers only what one scan has found: what happens between
/// calls waits in the kernel, and when the kernel has no room, all names are read again.
final class NameMonitor: Sendable {
    private struct State: ~Copyable {
        var watch: NameDirectoryWatch
        var table = NameSnapshot()
        /// Descriptors of the processes that hold names, this one excepted: of the first `Tuning.ownerLimit` that
        /// can be watched.
        var owners: [Int32: SharedDescriptor] = [:]
        /// The other owners.
        var unwatched: Set<Int32> = []
        /// When their names are read again; never when there are none.
        var nextCheck = MonotonicInstant.distantFuture
        /// What was found and not reported yet.
        var pending: [NameEvent] = []
        /// The next scan reads everything.
        var mustScanAll = true

        /// Whether the names of owners that are not watched must be read now.
        var isDue: Bool { nextCheck != .distantFuture && nextCheck <= .now }
    }

    private static let directoryKey: UInt64 = 0
    private let epoll: EpollSet  // immutable
    private let state: Mutex<State>
    private let forkGuard = ForkGuard()  // immutable

    /// Begins to watch; the first names that it reports are those that are held now.
    ///
    /// Parameters and errors are those of `NameDirectoryWatch.begin`.
    init(_ path: String, mayBeShared: Bool = false, scanning: IntervalScans? = nil) throws(PortError) {
        let watch = try NameDirectoryWatch.begin(at: path, mayBeShared: mayBeShared, scanning: scanning)
        epoll = try PortError.converting(EpollSet())
        try PortError.converting(epoll.add(watch.raw, .readable, key: Self.directoryKey))
        state = Mutex(State(watch: watch))
    }

    /// The descriptor to wait on: readable while there may be something to report.
    var raw: CInt { epoll.raw }

    /// Whether there is something to report, or to read, that does not make the descriptor readable.
    var hasMore: Bool {
        !forkGuard.isInherited
            && state.withLock { !$0.pending.isEmpty || $0.mustScanAll || $0.isDue || $0.watch.nextCheck <= .now }
    }

    /// When to ask for the next event although the descriptor is not readable.
    var nextCheck: MonotonicInstant {
        forkGuard.isInherited ? .distantFuture : state.withLock { min($0.nextCheck, $0.watch.nextCheck) }
    }

    /// The next name that came or went. Never waits.
    ///
    /// - Returns: nil when there is nothing now.
    /// - Throws: `forkedProcess`; `watchLimit`, `descriptorLimit`, `directoryUntrusted`, `systemCallFailed`. The next
    ///   call reads everything again, so nothing is lost.
    func next() throws(PortError) -> NameEvent? {
        try forkGuard.check()
        return try state.withLock { (state) throws(PortError) in
            do throws(PortError) {
                if state.pending.isEmpty { try read(&state) }
                return state.pending.isEmpty ? nil : state.pending.removeFirst()
            } catch {
                state.mustScanAll = true
                throw error
            }
        }
    }

    /// For tests: discards what the directory has reported.
    func forgetDirectoryReports() {
        state.withLock { state in _ = try? state.watch.changes() }
    }

    private func read(_ state: inout State) throws(PortError) {
        let ended = epoll.wait(until: .distantPast).map(\.key).filter { $0 != Self.directoryKey }
        let changes = try state.watch.changes()
        guard let names = state.watch.names else {
            state.pending += state.table.noteAll([:])
            state.mustScanAll = false
            (state.unwatched, state.nextCheck) = ([], .distantFuture)
            return dropIdleOwners(&state)
        }
        if state.mustScanAll || changes == .everything {
            state.pending += state.table.noteAll(try NameEntry.all(in: names))
            state.mustScanAll = false
        } else if case .files(let files) = changes {
            for file in files { try note(file, in: names, &state) }
        }
        for owner in ended.map({ Int32(truncatingIfNeeded: $0) }) {
            forget(owner, &state)
            // A name whose lock is held although its owner has ended is held by a child that the owner forked.
            for file in state.table.files(of: owner) { try note(file, in: names, &state) }
        }
        try watchOwners(in: names, &state)
        dropIdleOwners(&state)
    }

    private func note(_ file: String, in names: TrustedDirectory, _ state: inout State) throws(PortError) {
        state.pending += state.table.note(file, try NameEntry.read(at: file, in: names))
    }

    // MARK: Owners

    /// Watches for the ends of the processes that hold names. A process cannot be watched when there are too many, when
    /// no descriptor is left, or when it has no number here; it is tried again now and then, and its names are read.
    private func watchOwners(in names: TrustedDirectory, _ state: inout State) throws(PortError) {
        let (start, isDue) = (MonotonicInstant.now, state.isDue)
        let files = Dictionary(grouping: state.table.entries) { $0.value.registration.owner }
        var unwatched: Set<Int32> = []
        for (owner, files) in files where owner != sysProcessID() && state.owners[owner] == nil {
            let isKnown = state.unwatched.contains(owner)
            if isKnown && !isDue || !watch(owner, &state) { unwatched.insert(owner) }
            if isKnown && !isDue { continue }
            // The owner may have ended before it was watched, and its number may be another process's by now.
            for file in files { try note(file.key, in: names, &state) }
        }
        unwatched.formIntersection(state.table.owners)
        state.unwatched = unwatched
        if unwatched.isEmpty {
            state.nextCheck = .distantFuture
        } else if isDue || state.nextCheck == .distantFuture {
            let (pause, limits) = (start.duration(to: .now) * Tuning.pauseOfScan, Tuning.scanPauses)
            state.nextCheck = .after(min(max(pause, limits.lowerBound), limits.upperBound))
        }
    }

    /// - Returns: false when it cannot be watched.
    private func watch(_ owner: Int32, _ state: inout State) -> Bool {
        guard state.owners.count < Tuning.ownerLimit else { return false }
        do throws(SystemError) {
            guard let process = try sysProcessDescriptor(of: owner),
                try sysPoll(process.raw, .readable, until: .distantPast).isEmpty
            else { return false }  // it has ended
            let descriptor = SharedDescriptor(process)
            try epoll.add(descriptor.rawValue, .readable, key: UInt64(owner))
            state.owners[owner] = descriptor
            return true
        } catch {
            return false
        }
    }

    private func dropIdleOwners(_ state: inout State) {
        for owner in Set(state.owners.keys).subtracting(state.table.owners) { forget(owner, &state) }
    }

    private func forget(_ owner: Int32, _ state: inout State) {
        guard let descriptor = state.owners.removeValue(forKey: owner) else { return }
        epoll.remove(descriptor.rawValue)
    }
}

/// A name has come or gone.
public enum NameEvent: Hashable, Sendable, CustomStringConvertible {
    /// A port holds the name from now on.
    case appeared(PortNameServer.Registration)
    /// The port holds the name no more: it was unregistered, its port ended, or its owner did.
    case went(PortNameServer.Registration)

    /// The name, and the process that holds it or did.
    public var registration: PortNameServer.Registration {
        switch self {
        case .appeared(let registration), .went(let registration): registration
        }
    }

    /// One line.
    public var description: String {
        "\(isAppearance ? "appeared" : "went"): \(registration)"
    }

    fileprivate var isAppearance: Bool {
        if case .appeared = self { true } else { false }
    }
}

/// The held names as they were last read, by file; each further reading is compared with that.
struct NameSnapshot: Sendable {
    private(set) var entries: [String: NameEntry] = [:]

    /// The processes that hold names.
    var owners: Set<Int32> { Set(entries.values.map(\.registration.owner)) }

    /// The files of a process's names.
    func files(of owner: Int32) -> [String] {
        entries.filter { $0.value.registration.owner == owner }.map(\.key)
    }

    /// Records what one file says now.
    ///
    /// - Returns: the changes: the old holder has gone, and after that the new one has appeared.
    mutating func note(_ file: String, _ now: NameEntry?) -> [NameEvent] {
        let before = entries[file]
        if let before, let now, before.isSame(as: now) { return [] }
        entries[file] = now
        return [before.map { .went($0.registration) }, now.map { .appeared($0.registration) }].compactMap { $0 }
    }

    /// Records what all files say now.
    ///
    /// - Returns: the changes: all that have gone, then all that have appeared, each by name.
    mutating func noteAll(_ now: [String: NameEntry]) -> [NameEvent] {
        let changes = Set(entries.keys).union(now.keys).flatMap { note($0, now[$0]) }
        return changes.sorted { left, right in
            left.isAppearance == right.isAppearance
                ? left.registration.name < right.registration.name : right.isAppearance
        }
    }
}

/// Whether waits for names and watches of them may scan the directory at an interval, and how often they have.
final class IntervalScans: Sendable {
    private let nanoseconds = Atomic<Int64>(0)  // zero: they may not
    let count = Atomic<Int>(0)

    var interval: Duration? {
        get {
            let nanoseconds = nanoseconds.load(ordering: .relaxed)
            return nanoseconds == 0 ? nil : .nanoseconds(nanoseconds)
        }
        set {
            nanoseconds.store(newValue.map { max($0, Tuning.shortestInterval).nanoseconds } ?? 0, ordering: .relaxed)
        }
    }
}

extension PortNameServer {
    /// How often a wait for a name, a watch of names, or an iteration of ``events`` scans the directory where the
    /// kernel gives no directory watch: the user has none left, or a filter refuses inotify. Nil, the initial value:
    /// they throw ``/MessagePort/PortError/Code/watchLimit`` then.
    ///
    /// It applies to each wait, watch and iteration that begins from now on. A name may be found that much later than
    /// it came, and one that came and went between two scans is not found at all. Each scan reads the whole directory;
    /// ``intervalLookCount`` counts them. At least a millisecond.
    public var lookInterval: Duration? {
        get { scanning.interval }
        set { scanning.interval = newValue }
    }

    /// How many times waits and watches have scanned the directory because ``lookInterval`` had passed.
    public var intervalLookCount: Int { scanning.count.load(ordering: .relaxed) }
}
