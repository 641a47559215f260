// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem
package import RunLoopCore
import Synchronization

/// Finds the port that has a name.
package protocol PortFinder: Sendable {
    /// The name.
    var name: String { get }

    /// Looks the name up. Does not wait.
    ///
    /// - Returns: nil when no port has it; a right that is connected otherwise.
    func find() throws(PortError) -> SendRight?

    /// Searches on the I/O thread until a port has the name.
    ///
    /// - Parameters:
    ///   - date: when to look it up first.
    ///   - isForSender: whether a supervisor may be asked to start the name's owner.
    ///   - didFind: called once, unless the search is cancelled, with no lock held.
    /// - Returns: ends the search.
    /// - Throws: why there is no search, such as `watchLimit`.
    func search(
        after date: MonotonicInstant, isForSender: Bool,
        _ didFind: @escaping @Sendable (Result<SendRight, PortError>) -> Void
    ) throws(PortError) -> Cancellation
}

/// The destination of a right to a name: the port that has the name now, and after its end the next one. What waits for
/// the next one waits here; one search serves all of it.
package final class ReconnectingPort: PortEndpoint {
    private let finder: any PortFinder  // immutable
    private let reconnection = Mutex(Reconnection())
    private let forkGuard = ForkGuard()  // immutable

    package init(_ finder: any PortFinder) { self.finder = finder }

    deinit {
        if !forkGuard.isInherited { end(.invalidatedHere) }
    }

    package var label: String { "port named \(harmlessText(finder.name.debugDescription))" }
    package var repliesInMemory: Bool { false }

    package func checkProcess() throws(PortError) { try forkGuard.check() }

    package func pollDeath() -> Bool { forkGuard.isInherited || reconnection.withLock { $0.endReason != nil } }

    package func state() -> SendRight.State {
        forkGuard.isInherited ? .invalid(.unknown) : reconnection.withLock { $0.state }
    }

    package func owner() throws(PortError) -> PeerIdentity { try reach(until: .distantPast)?.owner() ?? .current }

    /// The present owner's: a right that is sent on leads to that port alone. Without an owner it is a dead name, for
    /// whatever reason: the message that has it is for another port, which the reason does not concern.
    package func address() throws(PortError) -> PortAddress {
        guard let owner = try rightToSend() else { throw PortError(.invalidPort) }
        return try owner.destination.address()
    }

    /// The owner that this finds is counted by its port, and has the end of a pipe if it is sent on.
    package func rightToSend() throws(PortError) -> SendRight? {
        try checkProcess()
        do throws(PortError) {
            if let owner = try findNow() { return owner }
        } catch {
            if error.isOwnShortage || error.code == .forkedProcess { throw error }
        }
        throw PortError(.invalidPort)
    }

    // Requests are for the owner, which `reach` gives.
    package func beginReplies(on loop: ThreadRunLoop, in mode: RunLoopMode) {}
    package func endReplies(on loop: ThreadRunLoop, in mode: RunLoopMode, to receiver: any ReplyReceiver) {}
}

// MARK: - Sending

extension ReconnectingPort {
    package func send(_ offered: inout MachMessage?, until deadline: SendDeadline) throws(PortError) {
        guard let message = offered.take() else { return }
        var deadline = deadline
        if deadline.mayWait { _ = deadline.fix() }  // one limit for the wait for a port and for each port's room
        while true {
            let owner = if let known = try present() { known } else { try waitForOwner(until: deadline.instant) }
            var copy: MachMessage? = message
            do throws(PortError) {
                return try owner.destination.send(&copy, until: deadline)
            } catch {
                guard error.code == .deadName, outlives(owner.destination) else { throw error }
            }
        }
    }

    nonisolated(nonsending) package func send(_ message: MachMessage, waiting wait: TaskWaiter) async throws(PortError)
    {
        while true {
            let owner = if let known = try present() { known } else { try await waitForOwner(wait) }
            do throws(PortError) {
                return try await owner.destination.send(message, waiting: wait)
            } catch {
                guard error.code == .deadName, outlives(owner.destination) else { throw error }
            }
        }
    }

    package func reach(until deadline: MonotonicInstant) throws(PortError) -> SendRight? {
        if let owner = try present() { return owner }
        return try waitForOwner(until: deadline)
    }

    nonisolated(nonsending) package func reach(waiting wait: TaskWaiter) async throws(PortError) -> SendRight? {
        if let owner = try present() { return owner }
        return try await waitForOwner(wait)
    }

    /// The owner, if there is one.
    ///
    /// - Throws: why there will never be one.
    private func present() throws(PortError) -> SendRight? {
        try checkProcess()
        return try reconnection.withLock { (reconnection) throws(PortError) in try Self.owner(reconnection) }
    }

    private static func owner(_ reconnection: Reconnection) throws(PortError) -> SendRight? {
        switch reconnection.endReason {
        case nil: return reconnection.usableOwner
        case .refused(let code)?, .quota(let code)?: throw PortError(code, delivery: .notSent)
        case _?: throw PortError(.invalidPort)
        }
    }

    private func waitForOwner(until deadline: MonotonicInstant) throws(PortError) -> SendRight {
        if let owner = try findNow() { return owner }
        let event = ThreadEvent()
        let (number, failureCount) = reconnection.withLock { ($0.makeNumber(), $0.failureCount) }
        defer { leave(number) }
        while deadline > .now {
            if let owner = try join(number, .thread(event), failureCount) { return owner }
            _ = event.wait(until: deadline)
            event.clear()
        }
        if let owner = try present() { return owner }
        throw noOwner
    }

    nonisolated(nonsending) private func waitForOwner(_ wait: TaskWaiter) async throws(PortError) -> SendRight {
        if let owner = try findNow() { return owner }
        if !wait.mayWait { throw noOwner }
        let (number, failureCount) = reconnection.withLock { ($0.makeNumber(), $0.failureCount) }
        defer { leave(number) }
        while true {
            if let owner = try join(number, .task(wait), failureCount) { return owner }
            do throws(PortError) {
                try await wait.wait()
            } catch {
                guard error.code == .sendTimedOut else { throw error }
                if let owner = try present() { return owner }
                throw noOwner
            }
        }
    }

    private var noOwner: PortError {
        PortError(.nameWaitTimedOut, subject: .name(finder.name), delivery: .notSent)
    }

    /// Waits for the next owner, unless there is one.
    ///
    /// - Throws: why there will be none, and why the search that began after `failureCount` others has failed.
    private func join(_ number: Int, _ waiter: Waiter, _ failureCount: Int) throws(PortError) -> SendRight? {
        let owner = try reconnection.withLock { (reconnection) throws(PortError) -> SendRight? in
            if let owner = try Self.owner(reconnection) { return owner }
            if let failure = reconnection.failure(after: failureCount) { throw failure }
            reconnection.join(number, waiter)
            return nil
        }
        if owner == nil { settleSearch() }
        return owner
    }

    private func leave(_ number: Int) {
        reconnection.withLock { $0.leave(number) }
        settleSearch()
    }

    /// The owner; without one looks the name up, without waiting.
    private func findNow() throws(PortError) -> SendRight? {
        let mayLook = reconnection.withLock { $0.owner == nil && $0.earliest <= .now }
        guard mayLook else { return try present() }
        do throws(PortError) {
            if let right = try finder.find() { adopt(right) }
        } catch {
            if error.code != .sendTimedOut { throw error }
        }
        return try present()
    }

    package func outlives(_ owner: any PortEndpoint) -> Bool {
        if forkGuard.isInherited || owner === self || !owner.pollDeath() { return false }
        let (generation, isUnreported) = reconnection.withLock { ($0.generation, $0.suspect(owner)) }
        if isUnreported { ownerDidEnd(generation, .unknown) }
        return true  // where there will be no other owner, the next attempt says why
    }
}

// MARK: - Notices

extension ReconnectingPort {
    @discardableResult
    package func awaitDeath(_ notice: DeathNotice) throws(PortError) -> Cancellation {
        try checkProcess()
        let pending = Reconnection.Notice(on: notice.loop, in: notice.mode) { state in
            if case .invalid(let reason) = state { notice.handler(reason) }
        }
        if let state = reconnection.withLock({ $0.addDeath(pending) }) { pending.notify(state) }
        return { [weak pending] in pending?.cancel() }
    }

    package func awaitChange(
        _ notice: LoopNotification<SendRight.State>, from state: SendRight.State
    ) throws(PortError) -> Cancellation {
        try checkProcess()
        let (failureCount, other) = reconnection.withLock { ($0.failureCount, $0.add(notice, from: state)) }
        if let other { notice.notify(other) }
        try search(for: notice, failureCount)
        return { [weak self, weak notice] in
            notice?.cancel()
            self?.settleSearch()
        }
    }

    package func awaitRoom(_ notice: LoopNotification<SendPossibility>) throws(PortError) {
        try checkProcess()
        let (owner, isOver, failureCount) = reconnection.withLock { reconnection in
            let (owner, isOver) = (reconnection.usableOwner, reconnection.endReason != nil)
            if owner == nil, !isOver { reconnection.addRoom(notice) }
            return (owner, isOver, reconnection.failureCount)
        }
        if isOver { return notice.notify(.deadName) }
        if let owner { return try owner.destination.awaitRoom(notice) }
        try search(for: notice, failureCount)
    }

    /// Searches for what the notice waits for. A search that fails later, or for a shortage, is repeated.
    ///
    /// - Throws: why the search that began after `failureCount` others has failed at once: there is no notice then.
    private func search<Content>(for notice: LoopNotification<Content>, _ failureCount: Int) throws(PortError) {
        settleSearch()
        guard let failure = reconnection.withLock({ $0.failure(after: failureCount) }), !failure.isOwnShortage,
            notice.cancel()
        else { return }
        settleSearch()
        throw failure
    }
}

// MARK: - Owners

extension ReconnectingPort {
    /// Ends it for good.
    package func end(_ reason: PortEndReason) {
        if forkGuard.isInherited { return }
        act(on: reconnection.withLock { $0.end(reason) })
    }

    private func adopt(_ right: SendRight) {
        let earliest = MonotonicInstant.after(Tuning.timeUntilRetry)
        let (change, generation) = reconnection.withLock { ($0.adopt(right, until: earliest), $0.generation) }
        guard let change else { return }
        act(on: change)  // first: so that the owner's end is not reported before the owner
        watchOwner(generation)
    }

    /// Has the owner's end reported. Where that is not possible now, a sender notices the end meanwhile.
    private func watchOwner(_ generation: Int) {
        guard let (owner, pause) = reconnection.withLock({ $0.unwatchedOwner(generation) }),
            let loop = try? IOThread.loop()
        else { return }
        do throws(PortError) {
            let request = try owner.notifyWhenDead(on: loop, in: .default) { [weak self] reason in
                self?.ownerDidEnd(generation, reason)
            }
            if !reconnection.withLock({ $0.setRequest(request, for: generation) }) { request.cancel() }
        } catch {
            loop.add(RunLoopTimer(after: pause) { [weak self] _ in self?.watchOwner(generation) })
        }
    }

    private func ownerDidEnd(_ generation: Int, _ reason: PortEndReason) {
        if forkGuard.isInherited { return }
        act(on: reconnection.withLock { $0.ownerDidEnd(generation, reason) })
    }

    /// Delivers what has changed, and releases what is over.
    private func act(on change: Reconnection.Change?) {
        guard let change else { return }
        change.request?.cancel()
        for waiter in change.waiters { waiter.wake() }
        for notice in change.notices + change.deathNotices { notice.notify(change.state) }
        for notice in change.roomNotices { notice.notify(change.state == .connected ? .possible : .deadName) }
        settleSearch()
    }
}

// MARK: - Searching

extension ReconnectingPort {
    /// Begins, changes or ends the search for the next owner.
    private func settleSearch() {
        switch reconnection.withLock({ $0.nextSearch() }) {
        case nil: return
        case .end(let cancellation)?: cancellation?()
        case .begin(let search, let date, let old)?:
            old?()
            begin(search.number, isForSender: search.isForSender, after: date)
        case .pause(let search, let time, let old)?:
            old?()
            pause(search.number, for: time)
        }
    }

    private func pause(_ number: Int, for time: Duration) {
        guard let loop = try? IOThread.loop() else { return }
        let timer = RunLoopTimer(after: time) { [weak self] _ in
            guard let self else { return }
            reconnection.withLock { $0.pauseDidEnd(number) }
            settleSearch()
        }
        if reconnection.withLock({ $0.didBegin(number) { timer.invalidate() } }) { loop.add(timer) }
    }

    private func begin(_ number: Int, isForSender: Bool, after date: MonotonicInstant) {
        do throws(PortError) {
            let cancellation = try finder.search(after: date, isForSender: isForSender) { [weak self] in
                self?.searchDidEnd(number, $0)
            }
            if !reconnection.withLock({ $0.didBegin(number, cancellation) }) { cancellation() }
        } catch {
            searchDidEnd(number, .failure(error))
        }
    }

    private func searchDidEnd(_ number: Int, _ result: Result<SendRight, PortError>) {
        if forkGuard.isInherited { return }
        switch result {
        case .success(let right):
            reconnection.withLock { $0.searchDidEnd(number) }
            adopt(right)
        case .failure(let error):
            for waiter in reconnection.withLock({ $0.searchDidFail(number, error) }) { waiter.wake() }
            settleSearch()
        }
    }
}
