// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

/// Receives a request's reply: filled once, by any thread, which then wakes the loop or the task that waits.
///
///   waiting ──reply──▶ replied ──take──▶ over
///      │ ╰────failure──▶ failed ──take──▶ over
///      ╰──giveUp, take──▶ abandoned: the callee is notified, later replies are refused
///
/// Not a `TaskWaiter`, which hands over nothing and is woken many times: here the wake-up and the result are one step,
/// under one lock, also for a thread, which waits by running its loop.
final class ReplySlot: ReplyReceiver {
    private enum Stage: Sendable {
        case waiting
        case replied(MachMessage)
        case failed(PortError)
        case abandoned(PortError)
        case over
    }

    private struct State: Sendable {
        var stage = Stage.waiting
        /// Whether the request is abandoned, and what is to know it is being notified: until that is done, the requester
        /// waits on.
        var isReporting = false
        var continuation: CheckedContinuation<Void, Never>?
        /// The token of the request that was sent over the direct connection, whose peer is then notified of an
        /// abandonment; zero before that.
        var sentToken: UInt64 = 0
        /// Called when the request is abandoned.
        var abandonmentHandlers: [@Sendable () -> Void] = []
        /// Connections to which the request was forwarded: retained until the wait ends.
        var connections: [any ReplyConnection] = []
        /// Ends the wait for room; nil when the thread does not wait for any.
        var wakeSender: (@Sendable () -> Void)?

        var isWaiting: Bool { if case .waiting = stage { true } else { isReporting } }
    }

    private let state = Mutex(State())
    private let loop: ThreadRunLoop?  // immutable; nil: a task waits
    /// The port of another process that the request is for; nil for other ports.
    let remote: RemotePort?  // immutable
    private let direct: ObjectIdentifier?  // immutable; the connection that the requester itself reads
    /// Whether the requester's thread handles nothing while it waits.
    private let isExclusive: Bool  // immutable
    private let directToken = Atomic<UInt64>(0)
    private let wasRead = Atomic<Bool>(false)
    private let wasRightRemoved = Atomic<Bool>(false)
    /// When the wait got its number; zero before.
    private let waitTime = Atomic<UInt64>(0)
    private let forkGuard = ForkGuard()  // immutable

    /// A slot for a request to a destination that is connected already: `beginReplies` watches its connection, if it has
    /// one. The loop is that of the thread that waits; nil for a task. An exclusive wait is in the private mode.
    init(wakes loop: ThreadRunLoop?, for destination: (any PortEndpoint)? = nil, isExclusive: Bool = false) {
        (self.loop, self.isExclusive) = (loop, isExclusive)
        remote = destination as? RemotePort
        direct = remote?.connection.map { ObjectIdentifier($0) }
    }

    /// Makes it as new, for another request to a port of this process, of the same thread. The caller has the only
    /// reference to it.
    ///
    /// - Returns: false for a forked child's copy, which stays as it is.
    fileprivate func renew() -> Bool {
        if isInherited { return false }
        var new = State()
        state.withLock { swap(&$0, &new) }
        directToken.store(0, ordering: .relaxed)
        wasRead.store(false, ordering: .relaxed)
        wasRightRemoved.store(false, ordering: .relaxed)
        waitTime.store(0, ordering: .relaxed)
        return true
    }

    /// Whether this is a forked child's copy: no requester waits here, and the lock and the loop may belong to a thread
    /// that does not exist here.
    var isInherited: Bool { forkGuard.isInherited }

    var isWaiting: Bool {
        !isInherited && state.withLock { $0.isWaiting }
    }

    /// Whether only the message's receiver can reply: the right is in a message that is queued or being handled.
    var isBound: Bool { !wasRightRemoved.load(ordering: .acquiring) }

    // MARK: For the graph of waits

    /// The number of the wait, which it gets when this is read first.
    var waitNumber: WaitNumber {
        var time = waitTime.load(ordering: .relaxed)
        if time == 0 {
            let made = WaitNumber.makeTime()
            let (isSet, old) = waitTime.compareExchange(expected: 0, desired: made, ordering: .relaxed)
            time = isSet ? made : old
        }
        return WaitNumber(ofWaitNoticedAt: time)
    }

    /// Another wait begins, with a number of its own: the requester has waited for room before.
    func beginWait() { waitTime.store(0, ordering: .relaxed) }

    // MARK: The callee's side

    func deliver(_ message: MachMessage, until deadline: MonotonicInstant) throws(PortError) {
        try forkGuard.check()
        guard end(.replied(message)) else { throw PortError(.deadName) }
    }

    func fail(_ error: PortError) {
        _ = end(.failed(error))
    }

    /// A port of this process forwarded the request to another process: the I/O thread awaits the reply.
    func expectReply(over connection: any ReplyConnection) throws(PortError) {
        try forkGuard.check()
        if direct == ObjectIdentifier(connection) { return }
        let loop = try IOThread.loop()
        guard let source = try connection.replySource() else { return }
        try loop.addOrThrow(source, to: .default)
        state.withLock { state in
            if case .waiting = state.stage { state.connections.append(connection) }
        }
    }

    func willWakeResponder(over connection: any ReplyConnection) {
        guard isExclusive, direct == ObjectIdentifier(connection), let loop, loop.isCurrent else { return }
        connection.beginBusyPolling(on: loop)
    }

    func noteRead() { wasRead.store(true, ordering: .releasing) }

    func noteRightRemoved() { wasRightRemoved.store(true, ordering: .releasing) }

    func pollAbandonment() -> Bool {
        isInherited || state.withLock { if case .abandoned = $0.stage { true } else { false } }
    }

    func awaitAbandonment(_ notice: DeathNotice) {
        whenAbandoned { notice.notify() }
    }

    func token(over connection: any ReplyConnection) -> UInt64? {
        let token = directToken.load(ordering: .acquiring)
        return direct == ObjectIdentifier(connection) && token != 0 ? token : nil
    }

    func passAbandonment(to connection: any ReplyConnection, token: UInt64) {
        guard direct == ObjectIdentifier(connection) else {
            return whenAbandoned { [weak connection] in connection?.giveUp(token: token) }
        }
        directToken.store(token, ordering: .releasing)
        let isAbandoned = state.withLock { state in
            state.sentToken = token
            return if case .abandoned = state.stage { true } else { false }
        }
        if isAbandoned { connection.giveUp(token: token) }
    }

    private func whenAbandoned(_ notify: @escaping @Sendable () -> Void) {
        if isInherited { return }
        let isAbandoned = state.withLock { state in
            switch state.stage {
            case .waiting:
                state.abandonmentHandlers.append(notify)
                return false
            case .abandoned: return true
            case .replied, .failed, .over: return false
            }
        }
        if isAbandoned { notify() }
    }

    func didAnswer(_ probe: WaitProbe, about token: RequestToken, hasReturned: Bool) {
        WaitProbes.didAnswer(probe, about: token, hasReturned: hasReturned)
    }

    func waitForRoom(
        until deadline: MonotonicInstant, toAsk token: UInt64, waking wake: @escaping @Sendable () -> Void,
        _ wait: (MonotonicInstant) throws(PortError) -> Bool
    ) throws(PortError) {
        let start = MonotonicInstant.now
        let alarm = start.advanced(by: Tuning.timeUntilProbe)
        // A message with this right that another thread sends on says nothing of this one.
        guard isExclusive, let loop, loop.isCurrent, alarm < deadline else { return _ = try wait(deadline) }
        if !isWaiting { return wake() }
        if try wait(alarm) { return }
        if token != 0 { directToken.store(token, ordering: .releasing) }
        // The loop does not run, which would receive the answers.
        var endReceiving: () -> Void = {}
        if let remote {
            guard let end = remote.receiveInBackground() else { return _ = try wait(deadline) }
            endReceiving = end
        }
        defer { endReceiving() }
        guard var phase = ProbePhase(for: self, on: loop, from: start) else { return _ = try wait(deadline) }
        defer { phase.end() }
        state.withLock { $0.wakeSender = wake }
        defer { state.withLock { $0.wakeSender = nil } }
        while isWaiting {
            let next = phase.startProbe()
            if try wait(min(next, deadline)) || deadline <= .now { return }
        }
        wake()
    }

    // MARK: The requester's side

    /// Abandons the request, unless something has come.
    ///
    /// - Parameters:
    ///   - error: why.
    ///   - delivery: what the error says of a message that was not read, as far as is known; nil where its code does.
    func giveUp(_ error: PortError, otherwise delivery: PortError.Delivery? = nil) {
        var error = error
        if wasRead.load(ordering: .acquiring) { error = error.delivered(.read) }
        if let delivery { error = error.delivered(delivery) }
        _ = end(.abandoned(error))
    }

    /// Takes the result; later replies are refused.
    func take() throws(PortError) -> MachMessage {
        try forkGuard.check()
        if isWaiting { giveUp(PortError(.replyTimedOut)) }
        let last = state.withLock { state in
            var last = state.stage
            if case .abandoned = last { return last }
            last = .over
            swap(&last, &state.stage)
            return last
        }
        switch last {
        case .replied(let message): return message
        case .failed(let error), .abandoned(let error): throw error
        case .waiting, .over: throw PortError(.replyTimedOut)
        }
    }

    /// What to throw for a request that was not sent: another thread may have ended its wait for room.
    func failure(ofUnsent error: PortError) -> PortError {
        guard error.code == .sendTimedOut, !isInherited else { return error }
        guard case .abandoned(var reason) = state.withLock({ $0.stage }) else { return error }
        reason.knownDelivery = .notSent
        return reason
    }

    /// Suspends the task until something has come, or `giveUp` was called.
    func wait() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if !state.isWaiting { return true }
                state.continuation = continuation
                return false
            }
            if isOver { continuation.resume() }
        }
    }

    /// Ends the wait, and wakes the requester. An abandonment is reported first: its handlers are called before the
    /// requester's call returns.
    ///
    /// - Returns: false when the wait had ended before.
    private func end(_ stage: Stage) -> Bool {
        if isInherited { return false }
        var old = State(stage: stage)
        if case .abandoned = stage { old.isReporting = true }
        let isFirst = state.withLock { state in
            guard case .waiting = state.stage else { return false }
            swap(&state, &old)  // a copy would cost more than the rest; its contents are released without the lock
            return true
        }
        if !isFirst { return false }
        if case .abandoned = stage {
            if old.sentToken != 0 { remote?.connection?.giveUp(token: old.sentToken) }
            for notify in old.abandonmentHandlers { notify() }
            let late = state.withLock { state in
                state.isReporting = false
                defer { (state.continuation, state.wakeSender) = (nil, nil) }
                return (continuation: state.continuation, wakeSender: state.wakeSender)
            }
            resume(late.continuation)
            late.wakeSender?()
        }
        resume(old.continuation)
        old.wakeSender?()
        loop?.wakeUp()
        if !old.abandonmentHandlers.isEmpty { Callouts.drop(old.abandonmentHandlers) }
        return true
    }
}

/// Resumes the task that waits, if one does.
private func resume(_ continuation: CheckedContinuation<Void, Never>?) {
    if let continuation { Callouts.run { continuation.resume() } }
}

// @unchecked: only the thread of the loop that has it uses it.
/// The slots of a thread's last two requests within the process, for reuse: when a request begins, the receiver of the
/// last one may not have released its message, which refers to the slot, but usually it has released the one before.
final class SlotCache: @unchecked Sendable {
    private var last: ReplySlot?
    private var previous: ReplySlot?

    /// A slot for a request that waits in the private mode: a former one to which nothing else refers, or a new one.
    static func slot(on loop: ThreadRunLoop) -> ReplySlot {
        let cache = loop.waitCache.take() as? SlotCache ?? SlotCache()
        defer { loop.waitCache.put(cache) }
        return cache.next(on: loop)
    }

    private func next(on loop: ThreadRunLoop) -> ReplySlot {
        swap(&last, &previous)
        if isKnownUniquelyReferenced(&last), let last, last.renew() { return last }
        let made = ReplySlot(wakes: loop, isExclusive: true)
        last = made
        return made
    }
}
