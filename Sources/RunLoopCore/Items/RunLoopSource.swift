// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// Something outside a loop that has work for it, handled on the loop's thread.
///
/// A *custom* source (version 0) is signalled by hand with ``signal()``. A *port-based* source (version 1) has a check
/// that says whether there is something to handle, and ``ring()``, which announces that the check's answer may have
/// changed; it may have a descriptor, whose readiness has the same effect as ``ring()``.
///
/// A source may be in several modes and several loops. They hold it until it is removed or invalidated; it holds what
/// its routines hold.
///
/// - Important: Thread safety: any thread. The perform routine is called on the thread of a loop that it is in;
///   schedule and cancel routines on the thread that adds, removes or invalidates. No lock is held during a routine.
public final class RunLoopSource: Sendable {
    /// Says whether a port-based source has something to handle. It must be quick, must not block, and may be called on
    /// the thread of each loop that the source is in.
    public typealias Readiness = @Sendable () -> Bool
    /// Is notified that the source has entered or left a mode of a loop.
    ///
    /// It is called after the fact, on the thread that adds, removes or invalidates, and holds no lock that other
    /// threads would wait for. So when one thread adds a source while another removes or invalidates it, `cancel` may
    /// be called before, or concurrently with, `schedule` for the same mode. A count of the two is correct in the end.
    public typealias ModeRoutine = @Sendable (ThreadRunLoop, RunLoopMode) -> Void
    /// Handles what the source has.
    public typealias Perform = @Sendable () -> Void

    struct State: Sendable {
        var membership = LoopMembership()
        /// Holds `signal` of a custom source, or `registration` of a port-based one: sharing it saves eight bytes.
        private var word: UInt64 = 0
        /// A port-based source: the descriptor that it watches.
        var descriptor: CInt?

        /// A custom source: the stamp of the first signal since it was last performed.
        var signal: UInt64? {
            get { word == 0 ? nil : word }  // 0 is no stamp
            set { word = newValue ?? 0 }
        }

        /// A port-based source: the cached index of one of its registrations in one of its loops. It may be out of
        /// date; then the loop has to search.
        var registration: RegistrationIndex {
            get { RegistrationIndex(word) }
            set { word = UInt64(newValue) }
        }
    }

    /// Its traits, in one byte: see `ObjectSizeTests`.
    private struct Traits: OptionSet {
        let rawValue: UInt8
        static let portBased = Traits(rawValue: 1)
        static let keepsModeAlive = Traits(rawValue: 2)
    }

    // First what a ring reads and changes, beside the reference count: see LineTests.
    let state: Mutex<State>  // comes before the loop's lock
    /// A port-based source that was signalled: it is on the ready lists of all its modes, or about to be put there.
    let isNotified = Atomic<Bool>(false)

    private let traits: Traits
    var isPortBased: Bool { traits.contains(.portBased) }
    /// Whether the source keeps a run going. A source that only awaits an end does not.
    var keepsModeAlive: Bool { traits.contains(.keepsModeAlive) }

    private let label: SourceLabel

    package let id = ItemID()
    let routine: any SourceRoutine

    /// What it is called in traces, reports and descriptions; nil when it was given no name.
    public var name: String? { label.name }
    /// Sources that have work at the same time are performed lowest first, equal ones in the order in which they
    /// received it.
    public var order: Int { label.order }

    /// Makes a source from its routine, for sources of this package.
    package init(
        label: SourceLabel, isPortBased: Bool = true, keepsModeAlive: Bool = true, routine: any SourceRoutine
    ) {
        self.label = label
        let traits: Traits = isPortBased ? .portBased : []
        self.traits = keepsModeAlive ? traits.union(.keepsModeAlive) : traits
        self.routine = routine
        state = Mutex(State())
    }

    /// As above, for sources of which there are few.
    package convenience init(
        name: String? = nil, order: Int = 0, isPortBased: Bool = true, keepsModeAlive: Bool = true,
        routine: any SourceRoutine
    ) {
        let isPlain = name == nil && order == 0
        self.init(
            label: isPlain ? .plain : SourceLabel(name, order: order), isPortBased: isPortBased,
            keepsModeAlive: keepsModeAlive, routine: routine)
    }

    /// Makes a custom source (version 0), which is performed after it was signalled.
    ///
    /// - Parameters:
    ///   - name: what it is called in traces, reports and descriptions.
    ///   - order: lower ones are performed first.
    ///   - schedule: called for each mode that the source enters.
    ///   - cancel: called for each mode that the source leaves, also because it was invalidated or the thread ends.
    ///   - perform: handles what the source has.
    public convenience init(
        name: String? = nil, order: Int = 0, schedule: ModeRoutine? = nil, cancel: ModeRoutine? = nil,
        perform: @escaping Perform
    ) {
        self.init(
            name: name, order: order, isPortBased: false,
            routine: SourceClosures(schedule: schedule, cancel: cancel, body: perform))
    }

    /// Makes a port-based source (version 1).
    ///
    /// After `perform` the check is made again, so `perform` may leave something for the next pass. Something else may
    /// have emptied the source between the check and `perform`, so `perform` must check for itself.
    ///
    /// - Parameters:
    ///   - name: what it is called in traces, reports and descriptions.
    ///   - order: lower ones are performed first.
    ///   - readiness: says whether there is something to handle.
    ///   - schedule: called for each mode that the source enters.
    ///   - cancel: called for each mode that the source leaves, also because it was invalidated or the thread ends.
    ///   - perform: handles what is there: one item, or all.
    public convenience init(
        name: String? = nil, order: Int = 0, readiness: @escaping Readiness, schedule: ModeRoutine? = nil,
        cancel: ModeRoutine? = nil, perform: @escaping Perform
    ) {
        self.init(
            name: name, order: order,
            routine: SourceClosures(readiness: readiness, schedule: schedule, cancel: cancel, body: perform))
    }

    /// Makes a port-based source (version 1) for a descriptor: anything that `poll(2)` can wait for.
    ///
    /// It is ready while the descriptor is readable, at its end, or in error: as long as `perform` leaves something
    /// there, it is called again. The loop never reads the descriptor.
    ///
    /// The caller keeps the descriptor open until the source is invalid. A source whose descriptor was closed is never
    /// ready again; when a duplicate of it lives on elsewhere, `perform` is called for what arrives there, and finds
    /// the descriptor closed.
    ///
    /// - Parameters:
    ///   - name: what it is called in traces, reports and descriptions.
    ///   - descriptor: an open descriptor, which remains the caller's.
    ///   - order: lower ones are performed first.
    ///   - schedule: called for each mode that the source enters.
    ///   - cancel: called for each mode that the source leaves, also because it was invalidated or the thread ends.
    ///   - perform: reads the descriptor.
    public convenience init(
        name: String? = nil, descriptor: CInt, order: Int = 0, schedule: ModeRoutine? = nil,
        cancel: ModeRoutine? = nil, perform: @escaping Perform
    ) {
        self.init(
            name: name, order: order, routine: SourceClosures(schedule: schedule, cancel: cancel, body: perform))
        state.withLock { $0.descriptor = descriptor }
    }

    /// Whether it may still be performed.
    public var isValid: Bool { state.withLock { $0.membership.isValid } }

    /// Whether it has been signalled since a loop last checked or performed it.
    public var isSignalled: Bool {
        isPortBased ? isNotified.load(ordering: .acquiring) : state.withLock { $0.signal != nil }
    }
}

extension RunLoopSource: Hashable {
    /// Whether both are the same source.
    public static func == (left: RunLoopSource, right: RunLoopSource) -> Bool { left === right }

    /// Hashes the source's identity.
    ///
    /// - Parameter hasher: takes the identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension RunLoopSource: CustomStringConvertible {
    /// What it is, its name when it has one, and its number.
    public var description: String {
        id.description(of: isPortBased ? "port-based source" : "custom source", named: name)
    }
}

// MARK: - Membership

extension RunLoopSource {
    package var loops: [ThreadRunLoop] { state.withLock { Array($0.membership.loops) } }

    /// Whether it is in this loop, and in no other.
    package func isIn(only loop: ThreadRunLoop) -> Bool {
        state.withLock { $0.membership.loops.only === loop }
    }

    /// One of them; nil when it is in none.
    package var firstLoop: ThreadRunLoop? { state.withLock { $0.membership.loops.first } }

    /// Removes the source from everything, permanently: its cancel routine is called on the calling thread for each
    /// mode that it leaves. A callout that is in progress continues.
    public func invalidate() {
        let (loops, departures) = state.withLock { state in
            let loops = state.membership.invalidate() ?? []
            let departures = loops.map { endRegistrations($0.removeItem(id, from: nil).departures) }
            if !isPortBased { state.signal = nil }
            state.descriptor = nil
            return (loops, departures)
        }
        for (loop, departures) in zip(loops, departures) { didLeave(departures, of: loop) }
    }

    /// Invalidates a source that is in no loop. One that is being added to a loop is either in it already or stays out.
    ///
    /// - Returns: whether it is invalid now.
    package func invalidateUnlessInLoop() -> Bool {
        state.withLock { state in
            guard state.membership.loops.isEmpty else { return false }
            _ = state.membership.invalidate()
            if !isPortBased { state.signal = nil }
            state.descriptor = nil
            return true
        }
    }

    /// Adds the source to a mode. A descriptor that the kernel cannot watch now may be watched later: see `watchLater`.
    ///
    /// - Throws: why the kernel does not watch the descriptor; the modes that the source is in are then unchanged.
    func add(to loop: ThreadRunLoop, _ mode: RunLoopMode, orLater: Bool = false) throws(SystemError) {
        let entered = state.withLock { state -> [Int] in
            // Mostly, where it is added again and again: in the mode of requests it stays.
            if isPortBased,
                loop.state.withLock({ $0.hasAlready(self, near: state.registration, in: mode) })
            {
                return []
            }
            return state.membership.add(.source(self), to: loop, mode)
        }
        if entered.isEmpty { return }
        do throws(SystemError) {
            try didEnter(entered, of: loop, orLater: orLater)
        } catch {
            _ = removeItem(of: loop, mode)
            throw error
        }
    }

    func remove(from loop: ThreadRunLoop, _ mode: RunLoopMode) {
        didLeave(removeItem(of: loop, mode), of: loop)
    }

    private func removeItem(of loop: ThreadRunLoop, _ mode: RunLoopMode) -> [RunLoopState.Removal] {
        state.withLock { state in
            defer { cacheRegistration(&state) }
            return endRegistrations(state.membership.remove(id, from: loop, mode))
        }
    }

    /// Caches the index of a registration, after the source has entered or left a mode.
    private func cacheRegistration(_ state: inout State) {
        guard isPortBased, let loop = state.membership.loops.first else { return }
        state.registration = loop.state.withLock { $0.registrations.registration(of: id) } ?? 0
    }

    /// Makes the loop notice a source that has entered modes, and notifies the source.
    func didEnter(_ modes: [Int], of loop: ThreadRunLoop, orLater: Bool = false) throws(SystemError) {
        let (registration, shortage) = try state.withLock { (state) throws(SystemError) in
            cacheRegistration(&state)
            if !isPortBased, let stamp = state.signal { loop.noteSignal(of: self, stamp) }
            let shortage = state.descriptor.flatMap { watchFailure($0, in: [loop]) }
            if let shortage, !orLater || !shortage.isShortage { throw shortage }
            return (state.registration, shortage)
        }
        if shortage != nil { watchLater(in: loop) }
        if isPortBased { loop.noteReadiness(of: self, near: registration) }
        for name in loop.state.withLock({ state in modes.map { state.modes[$0].name } }) {
            routine.didEnter(name, of: loop)
        }
    }

    /// Ends the registrations in modes that were left. The caller holds the source's lock: without it, the source could
    /// enter a mode again before this, find its old registration there, and then lose it.
    private func endRegistrations(_ departures: [RunLoopState.Removal]) -> [RunLoopState.Removal] {
        for departure in departures { departure.registration?.end(for: self) }
        return departures
    }

    private func didLeave(_ departures: [RunLoopState.Removal], of loop: ThreadRunLoop) {
        for departure in departures { routine.didLeave(departure.name, of: loop) }
    }
}

// MARK: - Signal

extension RunLoopSource {
    private static let lastSignal = Atomic<UInt64>(0)

    /// Marks a custom source as having work, and wakes the loops that run in one of its modes. A source that is in no
    /// loop keeps its mark. Signals coalesce until the source is performed. Traps for a port-based source.
    public func signal() {
        if isPortBased {
            fatalError("A port-based source cannot be signalled by hand. Use ring() when its check may have changed.")
        }
        let (loops, stamp) = state.withLock { state -> (SmallList<ThreadRunLoop>, UInt64) in
            if !state.membership.isValid || state.signal != nil { return ([], 0) }
            let stamp = Self.lastSignal.wrappingAdd(1, ordering: .relaxed).newValue
            state.signal = stamp
            return (state.membership.loops, stamp)
        }
        for loop in loops { loop.noteSignal(of: self, stamp) }
    }

    /// Announces that a port-based source's check may have become true: each loop that it is in checks it before it
    /// sleeps, and is woken when it sleeps already. Calls coalesce until a loop checks. Traps for a custom source.
    ///
    /// Call it after the change that the check must see. The check reads under the lock under which the change was
    /// made, or with sequentially consistent atomics.
    public func ring() {
        if !isPortBased {
            fatalError("A custom source is not rung. Use signal() when it has work.")
        }
        if isNotified.exchange(true, ordering: .sequentiallyConsistent) { return }
        let (loops, registration) = state.withLock { ($0.membership.list, $0.registration) }
        loops?.forEach { $0.noteReadiness(of: self, near: registration) }
    }

    /// Clears the mark of a custom source.
    ///
    /// - Returns: whether it is to be performed.
    func consumeSignal() -> Bool {
        state.withLock { state in
            guard state.membership.isValid, state.signal != nil else { return false }
            state.signal = nil
            return true
        }
    }
}

extension ThreadRunLoop {
    func noteSignal(of source: RunLoopSource, _ stamp: UInt64) {
        let mustWake = state.withLock { state in
            var mustWake = false
            for index in state.memberModes(of: source.id) {
                state.modes[index].signalled.set(source.id, ModeState.SignalKey(order: source.order, stamp: stamp))
                if state.isRunning(in: index) { mustWake = true }
            }
            return mustWake
        }
        if mustWake { parker.endWait() }
    }

    /// A source was signalled; the registration is the cached index of one of its registrations.
    func noteReadiness(of source: RunLoopSource, near registration: RegistrationIndex) {
        if state.withLock({ $0.noteReadiness(of: source, near: registration) }) { parker.endWait() }
    }
}
