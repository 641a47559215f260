// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

// How a request ends, once and for good, decided under its own lock:
//
//   waiting ──► called      the loop has begun to call it
//           ├─► withdrawn   it was cancelled, or the caller has given up waiting for it
//           └─► dropped     the loop's thread ended first
//
// The thread that ends the wait removes the work from the request, so only one of the three happens, and whatever the
// work holds is released there, with no lock held. The loop holds every waiting request in `PerformRequests`, besides
// the block or the timer that calls it; both are removed together with the request.

/// A call that was requested from a loop, and that can still be cancelled.
///
/// It is called once, on the loop's thread, or never. Until then the loop holds the request, its body and its target,
/// so the caller need not retain the request. They are released on the loop's thread after the call or when that thread
/// ends, and on the cancelling thread when the request is cancelled.
///
/// - Important: Thread safety: any thread.
public final class PerformRequest: Sendable {
    /// What a request holds until the wait for its call is over.
    struct Work: Sendable {
        let loop: ThreadRunLoop
        let target: (any AnyObject & Sendable)?
        let body: @Sendable () -> Void
        /// Called when the call has returned, or when the thread has ended before it, after everything else was
        /// released.
        let whenOver: (@Sendable (_ wasCalled: Bool) -> Void)?
    }

    private struct State: Sendable {
        var work: Work?
        var wasCalled = false
        /// The timer of a delayed request. The loop retains it; it retains the request.
        weak var timer: RunLoopTimer?
    }

    let id = ItemID()
    /// The target's identity, valid while the request waits: the request retains the target.
    let targetID: ObjectIdentifier?
    private let state: Mutex<State>

    init(
        on loop: ThreadRunLoop, for target: (any AnyObject & Sendable)? = nil,
        whenOver: (@Sendable (_ wasCalled: Bool) -> Void)? = nil, _ body: @escaping @Sendable () -> Void
    ) {
        targetID = target.map { ObjectIdentifier($0) }
        state = Mutex(State(work: Work(loop: loop, target: target, body: body, whenOver: whenOver)))
    }

    /// Whether it may still be called: it was neither called nor cancelled, and its loop's thread has not ended.
    public var isPending: Bool { state.withLock { $0.work != nil } }

    /// Cancels the request, unless the loop has begun to call it.
    ///
    /// - Returns: true when it was not called and never will be, also when it was cancelled before or the loop's thread
    ///   has ended; false when it was called or is being called now, as inside its own body.
    @discardableResult
    public func cancel() -> Bool {
        withdraw()
        return state.withLock { !$0.wasCalled }
    }

    /// Cancels the request.
    ///
    /// - Returns: whether this call cancelled it: the request was waiting, and will not be called.
    @discardableResult
    func withdraw() -> Bool {
        guard let (work, timer) = removeWork() else { return false }
        work.loop.forget([id], blocks: timer == nil ? [id] : [])
        timer?.invalidate()
        return true
    }

    /// Removes the work because the request is cancelled. The caller makes the loop forget it, and ends the timer.
    func removeWork() -> (Work, RunLoopTimer?)? {
        state.withLock { state in
            guard let work = state.work else { return nil }
            state.work = nil
            return (work, state.timer)
        }
    }

    func setTimer(_ timer: RunLoopTimer) {
        state.withLock { $0.timer = timer }
    }

    /// Calls the body on the loop's thread, unless the request was cancelled.
    func call() {
        var work = state.withLock { state -> Work? in
            defer { state.work = nil }
            if state.work != nil { state.wasCalled = true }
            return state.work
        }
        let whenOver = work?.whenOver
        work?.loop.forget([id])
        work?.body()
        work = nil
        whenOver?(true)
    }

    /// The loop's thread has ended.
    func drop() {
        var work = removeWork()?.0
        let whenOver = work?.whenOver
        work = nil
        whenOver?(false)
    }
}

extension PerformRequest: Hashable {
    /// Whether both are the same request.
    public static func == (left: PerformRequest, right: PerformRequest) -> Bool { left === right }

    /// Hashes the request's identity.
    ///
    /// - Parameter hasher: takes the identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// The requests of a loop that wait for their call, found by number and by target.
struct PerformRequests: Sendable {
    private var requests: [ItemID: PerformRequest] = [:]
    private var idsByTarget: [ObjectIdentifier: Set<ItemID>] = [:]

    var isEmpty: Bool { requests.isEmpty && idsByTarget.isEmpty }

    mutating func insert(_ request: PerformRequest) {
        requests[request.id] = request
        if let target = request.targetID { idsByTarget[target, default: []].insert(request.id) }
    }

    /// - Returns: the request, for the caller to release without the lock.
    mutating func remove(_ id: ItemID) -> PerformRequest? {
        guard let request = requests.removeValue(forKey: id) else { return nil }
        if let target = request.targetID {
            idsByTarget[target]?.remove(id)
            if idsByTarget[target]?.isEmpty == true { idsByTarget[target] = nil }
        }
        return request
    }

    /// The requests for a target, in the order in which they were made.
    func requests(for target: ObjectIdentifier) -> [PerformRequest] {
        (idsByTarget[target] ?? []).sorted().compactMap { requests[$0] }
    }

    /// All requests, in the order in which they were made.
    var all: [PerformRequest] {
        requests.values.sorted { $0.id < $1.id }
    }
}
