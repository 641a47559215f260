// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// The perform family: Docs/PerformFamily.md. A request is called by a block, or by a timer when it is delayed.

import Synchronization

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
            if let taken = request.takeWork() { cancelled.append(taken) }
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
        if mustWake { doorbell.endWait() }
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

extension RunLoopState {
    /// Holds a request until it is over.
    ///
    /// - Returns: false when the thread has ended: nothing was done.
    mutating func insert(_ request: PerformRequest) -> Bool {
        if hasEnded { return false }
        requests.insert(request)
        return true
    }

    /// Appends a block to the queue.
    ///
    /// - Returns: whether a sleeping loop must be woken for it.
    mutating func post(
        _ block: @escaping @Sendable () -> Void, id: ItemID? = nil, in modes: [RunLoopMode], name: String? = nil
    ) -> Bool {
        for mode in modes { noteBlock(in: mode) }
        blocks.append(block, id: id, modes: modes, name: name)
        return mustWake(forBlockIn: modes)
    }
}
