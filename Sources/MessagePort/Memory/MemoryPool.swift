// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

/// Memory for bodies of messages that are not copied: written in place, sent as a few words, read in place. Mach's
/// out-of-line memory.
///
/// ```swift
/// let pool = MemoryPool()
/// var loan = try pool.loan(3_000_000)
/// loan.withBytes { bytes in camera.fill(&bytes) }
/// try right.send(MachMessage(id: 7, memory: loan.freeze()), within: .seconds(1))
/// ```
///
/// A pool makes memory when a loan needs some, and retains it for the next: to make it costs much more than to use it.
/// What nobody has used for ten seconds goes back to the system. The same pool serves ports of this process, where nothing
/// is shared but a reference, and of other processes, which map its memory for reading and learn of each segment once.
///
/// A loan ends when the last ``MessageMemory`` of it is released, here and in each process to which it was sent. When a
/// process ends, all that it had is returned. What was received stays readable after the end of the connection, and of its
/// sender.
///
/// - Important: Each process to which memory of a pool was sent can read all of that pool's memory, also what was lent to
///   others. Use a pool for each group of processes that may see the same. And it reads what the pool's process writes at
///   any time: ``MessageMemory/Grade``.
/// - Important: Where a pool has no room, its calls receive what other processes have sent over connections that have its
///   memory, as a run loop does: call them with no lock held.
/// - Important: Thread safety: any thread. A forked child cannot use its parent's pool: ``PortError/Code/forkedProcess``.
/// - Important: Source of the behaviour: Mach's `mach_msg_ool_descriptor_t`; loans as in iceoryx2.
public final class MemoryPool: Sendable {
    /// The largest loan: 1 GiB. Beyond it: ``PortError/Code/messageTooLarge``.
    public static let largestLoan = 1 << 30

    /// The most bytes that a pool has unless said otherwise: 1 GiB. It makes none before it needs them.
    public static let defaultCapacity = 1 << 30

    /// How long a loan waits for room unless said otherwise: 10 seconds.
    public static let defaultLimit = Duration.seconds(10)

    private struct State {
        var slots: SlotTable
        /// Few, so they are found by comparing: to hash a number costs more.
        var segments: [MemorySegment] = []
        /// What wakes the threads and tasks that wait for room.
        var waiting: [ObjectIdentifier: Waiter] = [:]
        /// Through which connections memory was lent.
        var lenders: [MemoryLender] = []
        /// Gives idle memory back.
        var alarm: ItemID?

        mutating func remove(_ numbers: [UInt64]) -> [MemorySegment] {
            if numbers.isEmpty { return [] }
            defer { segments.removeAll { numbers.contains($0.number) } }
            return segments.filter { numbers.contains($0.number) }
        }
    }

    /// The most bytes of memory that it makes.
    public let capacity: Int  // immutable
    private let state: Mutex<State>
    private let forkGuard = ForkGuard()  // immutable

    /// Makes a pool. It has no memory yet, and no descriptor.
    ///
    /// - Parameter capacity: the most bytes of memory that it makes; at least 4,096, fewer trap.
    public init(capacity: Int = MemoryPool.defaultCapacity) {
        if capacity < Tuning.smallestSlot {
            fatalError("A pool of \(capacity) bytes is not possible; choose \(Tuning.smallestSlot) or more.")
        }
        self.capacity = capacity
        state = Mutex(State(slots: SlotTable(capacity: capacity)))
    }

    deinit {
        if !forkGuard.isInherited { AlarmClock.shared.stop(state.withLock { $0.alarm }) }
    }

    /// The bytes of memory that it has, lent or not.
    public var reservedByteCount: Int { withState(or: 0) { $0.slots.reservedByteCount } }

    /// The bytes of memory that are lent, as far as this process knows: what other processes have returned is found when
    /// the pool needs room, or by this.
    public var lentByteCount: Int {
        collectReturned(isThorough: true)
        return withState(or: 0) { $0.slots.usedByteCount }
    }

    /// Gives the memory that nobody uses back to the system now.
    public func trim() {
        collectReturned(isThorough: true)
        endIdle(since: .distantFuture)
    }

    /// Lends memory, if there is room now.
    ///
    /// - Parameter byteCount: how many bytes, 0 to ``largestLoan``.
    /// - Returns: the loan, whose bytes are what an earlier loan has left there; nil when there is no room.
    /// - Throws: ``PortError/Code/messageTooLarge`` when it is larger than ``largestLoan`` or than the pool's capacity;
    ///   ``PortError/Code/descriptorLimit`` or ``PortError/Code/systemCallFailed`` when memory is needed and the system
    ///   has none; ``PortError/Code/forkedProcess``.
    public func tryLoan(_ byteCount: Int) throws(PortError) -> LoanedMemory? {
        try slot(for: byteCount, isThorough: true).map { LoanedMemory($0, count: byteCount) }
    }

    /// Lends memory; waits until there is room.
    ///
    /// - Parameters:
    ///   - byteCount: how many bytes, 0 to ``largestLoan``.
    ///   - limit: how long to wait until enough of the pool's memory was returned.
    /// - Returns: the loan, whose bytes are what an earlier loan has left there.
    /// - Throws: ``PortError/Code/poolFull`` when there was no room until the limit; those of ``tryLoan(_:)``.
    @available(*, noasync, message: "It blocks the thread.")
    public func loan(_ byteCount: Int, within limit: Duration = MemoryPool.defaultLimit) throws(PortError)
        -> LoanedMemory
    {
        if let slot = try slot(for: byteCount, isThorough: true) { return LoanedMemory(slot, count: byteCount) }
        let (deadline, event) = (MonotonicInstant.after(limit), ThreadEvent())
        let key = ObjectIdentifier(event)
        state.withLock { $0.waiting[key] = .thread(event) }
        defer { state.withLock { $0.waiting[key] = nil } }
        var checks = ReturnChecks()
        while true {
            event.clear()
            if let slot = try slot(for: byteCount, isThorough: checks.isThorough) {
                return LoanedMemory(slot, count: byteCount)
            }
            if deadline <= .now { throw fullError(byteCount) }
            event.wait(until: min(deadline, .after(checks.nextPause())))
        }
    }

    /// Lends memory; waits, without blocking a thread, until there is room.
    ///
    /// - Parameters:
    ///   - byteCount: how many bytes, 0 to ``largestLoan``.
    ///   - limit: how long to wait until enough of the pool's memory was returned.
    /// - Returns: the loan, whose bytes are what an earlier loan has left there.
    /// - Throws: ``PortError/Code/poolFull`` when there was no room until the limit; ``PortError/Code/cancelled`` when the
    ///   task was cancelled; those of ``tryLoan(_:)``.
    nonisolated(nonsending) public func loan(
        _ byteCount: Int, within limit: Duration = MemoryPool.defaultLimit
    ) async throws(PortError) -> LoanedMemory {
        if let slot = try slot(for: byteCount, isThorough: true) { return LoanedMemory(slot, count: byteCount) }
        let wait = TaskWaiter(until: .after(limit))
        let key = ObjectIdentifier(wait)
        state.withLock { $0.waiting[key] = .task(wait) }
        defer {
            state.withLock { $0.waiting[key] = nil }
            wait.finish()
        }
        var checks = ReturnChecks()
        while true {
            if let slot = try slot(for: byteCount, isThorough: checks.isThorough) {
                return LoanedMemory(slot, count: byteCount)
            }
            let alarm = AlarmClock.shared.set(for: .after(checks.nextPause())) { wait.wake() }
            defer { AlarmClock.shared.stop(alarm) }
            do throws(PortError) {
                try await wait.wait()
            } catch {
                throw error.code == .sendTimedOut ? fullError(byteCount) : error
            }
        }
    }

    private func fullError(_ byteCount: Int) -> PortError {
        PortError(.poolFull, subject: .size(byteCount, limit: capacity))
    }
}

// MARK: - Slots

extension MemoryPool {
    /// The pool's state; in a forked child, which must not lock, `value`.
    private func withState<Result: Sendable>(or value: Result, _ body: (inout State) -> Result) -> Result {
        forkGuard.isInherited ? value : state.withLock { body(&$0) }
    }

    /// A slot for a loan; nil when there is no room.
    private func slot(for byteCount: Int, isThorough: Bool) throws(PortError) -> MemorySlot? {
        if forkGuard.isInherited { throw PortError(.forkedProcess) }
        if byteCount < 0 { fatalError("A loan of \(byteCount) bytes is not possible; choose 0 or more.") }
        let limit = min(Self.largestLoan, capacity)
        if byteCount > limit { throw PortError(.messageTooLarge, subject: .size(byteCount, limit: limit)) }
        let size = min(SlotTable.slotSize(for: byteCount), capacity)
        if let slot = freeSlot(ofSize: size) { return slot }
        collectReturned(isThorough: false)
        if let slot = freeSlot(ofSize: size) { return slot }
        if isThorough {
            collectReturned(isThorough: true)
            if let slot = freeSlot(ofSize: size) { return slot }
        }
        return try newSlot(ofSize: size)
    }

    private func freeSlot(ofSize size: Int) -> MemorySlot? {
        state.withLock { state in
            guard let slot = state.slots.takeSlot(ofSize: size),
                let segment = state.segments.first(where: { $0.number == slot.segment })
            else { return nil }
            return MemorySlot(slot, of: segment, size: size, from: self)
        }
    }

    /// A slot of a new segment; nil when there is no room for one. The memory is made without the lock.
    private func newSlot(ofSize size: Int) throws(PortError) -> MemorySlot? {
        var failure: PortError?
        // Half as many slots where there is no room for more, or the system has no memory for them; at last one.
        let most = state.withLock { $0.slots.slotCount(ofSize: size) }
        for count in sequence(first: most, next: { $0 > 1 ? $0 / 2 : nil }) {
            let ended = state.withLock { state in state.slots.reserve(size * count).map { state.remove($0) } }
            guard let ended else { continue }
            end(ended)
            do throws(PortError) {
                let segment = try MemorySegment(size: size * count)
                return state.withLock { state in
                    state.segments.append(segment)
                    let slot = state.slots.add(segment.number, slotSize: size, count: count)
                    return MemorySlot(slot, of: segment, size: size, from: self)
                }
            } catch {
                state.withLock { $0.slots.unreserve(size * count) }
                failure = error
                if error.systemError?.isShortage != true || error.systemError?.isDescriptorLimit == true { break }
            }
        }
        if let failure { throw failure }
        return nil
    }

    /// A loan has ended.
    func giveBack(_ slot: SlotTable.Slot) {
        if forkGuard.isInherited { return }
        let (waiting, mustSet) = state.withLock { state in
            state.slots.giveBack(slot, at: .coarse)
            return (
                state.waiting.isEmpty ? [] : Array(state.waiting.values),
                state.alarm == nil && state.slots.hasIdleSegment
            )
        }
        for waiter in waiting { waiter.wake() }
        if mustSet { setAlarm() }
    }

    // MARK: Idle memory

    /// Called without a lock.
    func setAlarm() {
        let alarm = AlarmClock.shared.set(for: .after(Tuning.idleMemoryTime)) { [weak self] in self?.alarmDidRing() }
        let superfluous = state.withLock { state in
            if state.alarm != nil { return true }
            state.alarm = alarm
            return false
        }
        if superfluous { AlarmClock.shared.stop(alarm) }
    }

    private func alarmDidRing() {
        if forkGuard.isInherited { return }
        collectReturned(isThorough: true)
        endIdle(since: .after(.zero - Tuning.idleMemoryTime))
        let (hasIdle, hasLenders) = state.withLock { state in
            state.alarm = nil
            return (state.slots.hasIdleSegment, !state.lenders.isEmpty)
        }
        if hasIdle || hasLenders { setAlarm() }
    }

    private func endIdle(since instant: MonotonicInstant) {
        end(withState(or: []) { state in state.remove(state.slots.removeIdle(since: instant)) })
    }

    /// Segments end: other processes are notified, and release their mappings.
    private func end(_ segments: [MemorySegment]) {
        if segments.isEmpty { return }
        let lenders = state.withLock { $0.lenders }
        for lender in lenders { lender.didEnd(segments.map(\.number)) }
    }

    // MARK: Other processes

    /// Memory of the pool was lent through a connection. Called under the lender's lock.
    ///
    /// - Returns: whether an alarm is to be set.
    func add(_ lender: MemoryLender) -> Bool {
        state.withLock { state in
            if !state.lenders.contains(where: { $0 === lender }) { state.lenders.append(lender) }
            return state.alarm == nil
        }
    }

    /// For tests: through how many connections memory is lent, or known.
    var lenderCount: Int { state.withLock { $0.lenders.count } }

    /// Nothing of the pool is lent through a connection, and it knows no segment, or has ended. Called under the lender's
    /// lock.
    func remove(_ lender: MemoryLender) { state.withLock { $0.lenders.removeAll { $0 === lender } } }

    /// Takes back what other processes have returned.
    private func collectReturned(isThorough: Bool) {
        for lender in withState(or: [], { $0.lenders }) { lender.collectReturned(isThorough: isThorough) }
    }
}

/// How often a thread or task that waits for room checks what other processes have returned.
private struct ReturnChecks {
    private var pause = Tuning.firstReturnCheck
    private var count = 0

    /// Whether the next check asks the kernel, too: each thirty-second.
    var isThorough: Bool { count % 32 == 0 }

    /// How long to wait before the next check.
    mutating func nextPause() -> Duration {
        defer { pause = min(pause * 2, Tuning.lastReturnCheck) }
        count += 1
        return pause
    }
}
