// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

// The perform family: Docs/PerformFamily.md. A request is called by a block, or by a timer when it is delayed.
extension ThreadRunLoop {
    /// Posts a closure that can be cancelled, through its request or with all others for its target.
    ///
    /// The call returns at once and wakes the loop. The loop calls the body once, when it runs in one of the modes,
    /// after all blocks and requests that were posted before. When the thread has already ended, everything is released
    /// at once.
    ///
    /// - Parameters:
    ///   - modes: in which modes, at least one or the call traps; ``RunLoopMode/common`` means the modes that are
    ///     common when the loop calls its blocks.
    ///   - target: the object for which it is done; retained until the call has returned or can no longer come. Nil
    ///     when only the request itself may cancel it.
    ///   - body: what to call, on the loop's thread; retained as long as the target.
    /// - Returns: the request; the caller need not retain it.
    /// - Important: Thread safety: any thread.
    @discardableResult
    public func perform(
        in modes: [RunLoopMode] = [.default], for target: (any AnyObject & Sendable)?,
        _ body: @escaping @Sendable () -> Void
    ) -> PerformRequest {
        Self.checkRequestModes(modes)
        let request = PerformRequest(on: self, for: target, body)
        post(request, in: modes)
        return request
    }

    /// Requests a call after a delay, which can be cancelled, through its request or with all others for its target.
    ///
    /// The call returns at once. The request is a timer: the loop calls the body once, when the time has passed and the
    /// loop runs in one of the modes and is free; it keeps a run in these modes going until then. Requests that are due
    /// at the same moment are called in the order in which they were made. When the thread has already ended,
    /// everything is released at once.
    ///
    /// - Parameters:
    ///   - name: what the request's timer is called in traces and reports.
    ///   - delay: how long to wait at least; zero or less means the next pass that fires timers, a delay beyond the
    ///     clock's range means never.
    ///   - modes: in which modes, at least one or the call traps; in ``RunLoopMode/common`` it is in all common modes.
    ///   - target: the object for which it is done; retained until the call has returned or can no longer come.
    ///   - body: what to call, on the loop's thread; retained as long as the target.
    /// - Returns: the request; the caller need not retain it.
    /// - Important: Thread safety: any thread.
    @discardableResult
    public func perform(
        name: String? = nil, after delay: Duration, in modes: [RunLoopMode] = [.default],
        for target: (any AnyObject & Sendable)? = nil, _ body: @escaping @Sendable () -> Void
    ) -> PerformRequest {
        Self.checkRequestModes(modes)
        let request = PerformRequest(on: self, for: target, body)
        let timer = RunLoopTimer(name: name ?? "perform after", after: delay) { _ in request.call() }
        request.setTimer(timer)
        guard state.withLock({ $0.insert(request) }) else {
            request.drop()
            return request
        }
        // If it was cancelled meanwhile, the timer is invalid, and adding it does nothing.
        for mode in modes { add(timer, to: mode) }
        return request
    }

    /// Cancels all requests of this loop for a target that have not begun, delayed and immediate ones, in all modes.
    ///
    /// - Parameter target: the object that was given when the requests were made; compared by identity.
    /// - Returns: how many it has cancelled.
    /// - Important: Thread safety: any thread.
    @discardableResult
    public func cancelPerformRequests(for target: AnyObject) -> Int {
        let requests = state.withLock { $0.requests.requests(for: ObjectIdentifier(target)) }
        var cancelled: [(PerformRequest.Work, RunLoopTimer?)] = []
        for request in requests {
            if let taken = request.removeWork() { cancelled.append(taken) }
        }
        let ids = Set(requests.map(\.id))
        forget(ids, blocks: ids)
        for (_, timer) in cancelled { timer?.invalidate() }
        return cancelled.count
    }

    /// Posts a request as a block, or drops it when the thread has ended.
    func post(_ request: PerformRequest, in modes: [RunLoopMode]) {
        let (isAccepted, mustWake) = state.withLock { state in
            if !state.insert(request) { return (false, false) }
            return (true, state.post({ request.call() }, id: request.id, in: modes, name: "perform"))
        }
        if mustWake { parker.endWait() }
        if !isAccepted { request.drop() }
    }

    /// Removes requests that are over from the loop's list, and the blocks of those that will not be called.
    func forget(_ ids: Set<ItemID>, blocks: Set<ItemID> = []) {
        let released = state.withLock { state in
            (ids.map { state.requests.remove($0) }, blocks.isEmpty ? [] : state.blocks.remove(blocks))
        }
        _ = released  // released here, without the lock
    }

    static func checkRequestModes(_ modes: [RunLoopMode]) {
        if modes.isEmpty {
            fatalError("A request in no mode is never called. Name at least one mode, or leave `in` out.")
        }
    }
}

// MARK: - PerformAndWait

extension ThreadRunLoop {
    /// Calls a closure on the loop's thread and blocks until it has returned.
    ///
    /// On the loop's own thread it is called at once, whatever the modes and the limit are. Elsewhere it is posted,
    /// after everything that the calling thread has posted to this loop before, and called when the loop runs in one of
    /// the modes. The loop is woken. Two threads that wait for each other in this way wait until a limit passes.
    ///
    /// Whatever the body holds is released before the call returns; or, when the limit passes during the body, after
    /// the body.
    ///
    /// - Parameters:
    ///   - modes: in which modes, at least one or the call traps; ``RunLoopMode/common`` means the modes that are
    ///     common when the loop calls its blocks.
    ///   - limit: the longest time to wait for the body to return. Zero or less never waits: on another thread nothing
    ///     is posted.
    ///   - body: what to call, on the loop's thread.
    /// - Returns: what the body returned.
    /// - Throws: what the body threw; ``RunLoopError`` with the code ``RunLoopError/Code/threadEnded`` when the loop's
    ///   thread has ended, or ends before it has begun the body; ``RunLoopError/Code/timedOut`` when the limit has
    ///   passed: a body that has not begun is then never called, one that has begun continues and its result is
    ///   dropped.
    /// - Important: Thread safety: any thread.
    @available(*, noasync, message: "It blocks the thread. Leave `within` out to suspend the task instead.")
    public func performAndWait<Success: Sendable>(
        in modes: [RunLoopMode] = [.default], within limit: Duration, _ body: @escaping @Sendable () throws -> Success
    ) throws -> Success {
        if isCurrent { return try body() }
        Self.checkRequestModes(modes)
        if limit <= .zero { throw RunLoopError(hasEnded ? .threadEnded : .timedOut) }
        let deadline = MonotonicInstant.after(limit)
        let outcome = PerformOutcome<Success>()
        let request = PerformRequest(on: self, outcome: outcome, body)
        let isOver = ThreadEvent()
        outcome.whenOver { _ in isOver.set() }
        post(request, in: modes)
        if !isOver.wait(until: deadline) { request.withdraw() }
        guard let result = outcome.result else { throw RunLoopError(.timedOut) }
        return try result.get()
    }

    /// Calls a closure on the loop's thread and suspends the task until it has returned.
    ///
    /// On the loop's own thread, as in a task of an actor that runs on this loop, it is called at once, whatever the
    /// modes are. Elsewhere it is posted, and called when the loop runs in one of the modes. The loop is woken.
    ///
    /// There is no limit. Cancelling the task withdraws a body that has not begun; the call waits for one that has
    /// begun.
    ///
    /// - Parameters:
    ///   - modes: in which modes, at least one or the call traps; ``RunLoopMode/common`` means the modes that are
    ///     common when the loop calls its blocks.
    ///   - body: what to call, on the loop's thread.
    /// - Returns: what the body returned.
    /// - Throws: what the body threw; `CancellationError` when the task was cancelled before the body began, which is
    ///   then never called; ``RunLoopError`` with the code ``RunLoopError/Code/threadEnded`` when the loop's thread has
    ///   ended, or ends before it has begun the body.
    /// - Important: Thread safety: any thread.
    nonisolated(nonsending) public func performAndWait<Success: Sendable>(
        in modes: [RunLoopMode] = [.default], _ body: @escaping @Sendable () throws -> Success
    ) async throws -> Success {
        try Task.checkCancellation()
        if isCurrent { return try body() }
        Self.checkRequestModes(modes)
        let outcome = PerformOutcome<Success>()
        let request = PerformRequest(on: self, outcome: outcome, body)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                outcome.whenOver { continuation.resume(with: $0) }
                post(request, in: modes)
                // Cancelled before it was posted: the withdrawal found nothing to remove from the loop.
                if Task.isCancelled, !request.isPending { forget([request.id], blocks: [request.id]) }
            }
        } onCancel: {
            if request.withdraw() { outcome.finish(CancellationError()) }
        }
    }
}
