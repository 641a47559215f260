// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

// Where a right to a name leads, what waits for the name's next owner, and whether to search for it. A plain value: it
// decides, and `ReconnectingPort` acts after the unlock.
//
//   interrupted ──adopt──▶ connected ──ownerDidEnd──▶ interrupted
//                          connected ──suspect──▶ ending ──ownerDidEnd──▶ interrupted
//   any of them ──end──▶ invalid
struct Reconnection: Sendable {
    typealias Notice = LoopNotification<SendRight.State>

    /// What is to be done after the unlock.
    struct Change: Sendable {
        /// What is to be delivered, and to which notices.
        var state: SendRight.State
        var notices: [Notice] = []
        var deathNotices: [Notice] = []
        var roomNotices: [LoopNotification<SendPossibility>] = []
        var waiters: [Waiter] = []
        /// What is released: the former owner, and the notice of its end.
        var owner: SendRight?
        var request: NoticeRequest?
    }

    /// A search for the next owner.
    struct Search: Sendable {
        let number: Int
        /// Whether something is to be sent: then a supervisor may be asked to start the owner.
        let isForSender: Bool
        /// Whether it is the pause between a search that failed and the next one.
        let isPause: Bool
        var cancellation: Cancellation?
    }

    private(set) var owner: SendRight?
    /// The number of owners until now.
    private(set) var generation = 0
    private var known = SendRight.State.interrupted(nil)
    /// Whether the owner is known to be gone, and the notice of its end, with the reason, is still to come.
    private(set) var isEnding = false
    private var request: NoticeRequest?
    /// When an owner may be looked up again: one that always ends at once does not keep a thread busy.
    private(set) var earliest = MonotonicInstant.distantPast

    private var waiters: [Int: Waiter] = [:]
    private var notices: [Notice] = []
    private var deathNotices: [Notice] = []
    private var roomNotices: [LoopNotification<SendPossibility>] = []

    private var search: Search?
    private var lastNumber = 0
    /// Why the last search failed: the next one begins when something new waits, or after a pause.
    private var failure: PortError?
    private(set) var failureCount = 0

    var state: SendRight.State { isEnding ? .interrupted(nil) : known }
    var endReason: PortEndReason? { if case .invalid(let reason) = known { reason } else { nil } }
    /// The owner, unless it is known to be gone.
    var usableOwner: SendRight? { isEnding ? nil : owner }

    // MARK: Owners

    /// An owner was found.
    ///
    /// - Returns: nil when there is one already, or never will be another.
    mutating func adopt(_ right: SendRight, until earliest: MonotonicInstant) -> Change? {
        if endReason != nil || owner != nil { return nil }
        owner = right
        generation += 1
        self.earliest = earliest
        return change(to: .connected)
    }

    /// The end of this owner will be reported.
    ///
    /// - Returns: whether it is still the owner.
    mutating func setRequest(_ request: NoticeRequest, for generation: Int) -> Bool {
        guard owner != nil, self.request == nil, generation == self.generation else { return false }
        self.request = request
        return true
    }

    /// A sender has found the owner gone.
    ///
    /// - Returns: whether its end will not be reported otherwise.
    mutating func suspect(_ destination: any PortEndpoint) -> Bool {
        guard let owner, owner.destination === destination else { return false }
        if request == nil { return true }
        isEnding = true
        return false
    }

    mutating func ownerDidEnd(_ generation: Int, _ reason: PortEndReason) -> Change? {
        guard owner != nil, generation == self.generation else { return nil }
        switch reason {
        case .quota(.peerNotReading): return change(to: .interrupted(reason))  // the next owner may read
        case .refused, .quota: return change(to: .invalid(reason))
        default: return change(to: .interrupted(reason))
        }
    }

    mutating func end(_ reason: PortEndReason) -> Change? { endReason == nil ? change(to: .invalid(reason)) : nil }

    private mutating func change(to state: SendRight.State) -> Change {
        var change = Change(state: state, notices: notices, waiters: Array(waiters.values))
        known = state
        isEnding = false
        notices = []
        if state != .connected { (change.owner, change.request) = (owner.take(), request.take()) }
        if case .interrupted = state { return change }
        (change.roomNotices, roomNotices) = (roomNotices, [])
        if case .invalid = state { (change.deathNotices, deathNotices) = (deathNotices, []) }
        return change
    }

    // MARK: Waiting

    mutating func join(_ number: Int, _ waiter: Waiter) {
        if waiters.updateValue(waiter, forKey: number) == nil { failure = nil }
    }

    mutating func leave(_ number: Int) { waiters[number] = nil }

    mutating func makeNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }

    /// - Returns: the state, when it is not the known one: the notice is not retained then.
    mutating func add(_ notice: Notice, from state: SendRight.State) -> SendRight.State? {
        // An owner that is gone is reported with the reason, soon.
        if !isEnding, known != state { return known }
        if endReason != nil { return nil }
        notices.removeAll { $0.isOver }
        notices.append(notice)
        failure = nil
        return nil
    }

    /// Adds a notice of the end for good.
    ///
    /// - Returns: the state, when the end has come: the notice is not retained then.
    mutating func addDeath(_ notice: Notice) -> SendRight.State? {
        if endReason != nil { return known }
        deathNotices.removeAll { $0.isOver }
        deathNotices.append(notice)
        return nil
    }

    mutating func addRoom(_ notice: LoopNotification<SendPossibility>) {
        roomNotices.removeAll { $0.isOver }
        roomNotices.append(notice)
        failure = nil
    }

    // MARK: Searching

    enum SearchChange: Sendable {
        case begin(Search, after: MonotonicInstant, insteadOf: Cancellation?)
        case pause(Search, for: Duration, insteadOf: Cancellation?)
        case end(Cancellation?)
    }

    /// What to do about the search now; nil for nothing.
    mutating func nextSearch() -> SearchChange? {
        notices.removeAll { $0.isOver }
        roomNotices.removeAll { $0.isOver }
        let isForSender = !waiters.isEmpty || !roomNotices.isEmpty
        guard owner == nil, endReason == nil, isForSender || !notices.isEmpty else {
            return search.take().map { .end($0.cancellation) }
        }
        let isPause = failure != nil
        if let search, search.isForSender == isForSender, search.isPause == isPause { return nil }
        let old = search
        let next = Search(number: makeNumber(), isForSender: isForSender, isPause: isPause)
        search = next
        if let failure { return .pause(next, for: Self.pause(after: failure), insteadOf: old?.cancellation) }
        return .begin(next, after: earliest, insteadOf: old?.cancellation)
    }

    private static func pause(after failure: PortError) -> Duration {
        failure.isOwnShortage ? Tuning.timeUntilRetry : Tuning.timeUntilNextSearch
    }

    /// Why a search has failed that began after `count` others had.
    func failure(after count: Int) -> PortError? { failureCount > count ? failure : nil }

    /// The pause is over: the next search may begin.
    mutating func pauseDidEnd(_ number: Int) {
        guard search?.number == number else { return }
        search = nil
        failure = nil
    }

    /// The owner, if it is still this one, when its end is not going to be reported; and when to try that again. A
    /// notice waits for the report.
    func unwatchedOwner(_ generation: Int) -> (owner: SendRight, pause: Duration)? {
        guard let owner, request == nil, generation == self.generation else { return nil }
        return (owner, notices.isEmpty ? Tuning.timeUntilNextSearch : Tuning.timeUntilRetry)
    }

    /// - Returns: whether the search is still wanted.
    mutating func didBegin(_ number: Int, _ cancellation: @escaping Cancellation) -> Bool {
        guard search?.number == number else { return false }
        search?.cancellation = cancellation
        return true
    }

    /// The search has failed.
    ///
    /// - Returns: what waits for it.
    mutating func searchDidFail(_ number: Int, _ error: PortError) -> [Waiter] {
        guard search?.number == number else { return [] }
        search = nil
        failure = error
        failureCount += 1
        return Array(waiters.values)
    }

    mutating func searchDidEnd(_ number: Int) {
        if search?.number == number { search = nil }
    }
}
