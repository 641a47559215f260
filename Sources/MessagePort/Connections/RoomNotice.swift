// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// How a sender that cannot wait in a call, because it has a notice or is a task, learns that a connection has room, or
// that the port has granted some.

import PortSystem
import RunLoopCore
import Synchronization

extension SocketConnection {
    /// Called when there may be room, once for each wait.
    func roomDidCome() {
        sender.backlog.withLock { $0.isWatched = false }
        flush()
        closeIfFlushed()
    }

    /// The events with which the kernel reports room, or the peer's end. The end of a port closes its connections for
    /// receiving, which would look like the peer's end.
    var roomEvents: EpollEvents { isPortsEnd ? .writable : [.writable, .peerClosed] }

    /// Delivers the notice, once, when the socket is found writable, or its peer gone. The right of `port` is retained
    /// as long as the notice waits.
    ///
    /// - Throws: `descriptorLimit` and `systemCallFailed` when the kernel cannot watch; then the notice is still the
    ///   caller's.
    func awaitRoom(_ notice: LoopNotification<SendPossibility>, for port: RemotePort? = nil) throws(PortError) {
        let query: CreditQuery?
        do throws(PortError) {
            query = try sender.askForNotice(over: self)
        } catch {
            if error.code == .deadName { return notice.notify(.deadName) }
            throw error
        }
        try watch(notice, for: port, query)
    }

    /// As above. The end of `requester`, another connection, ends the wait, too.
    func watch(
        _ notice: LoopNotification<SendPossibility>, for port: RemotePort? = nil, _ query: CreditQuery? = nil,
        endingWith requester: SocketConnection? = nil
    ) throws(PortError) {
        let routine = try RoomNotice(self, for: port, notice, query, endingWith: requester)
        let source = RunLoopSource(name: "port room", keepsModeAlive: false, routine: routine)
        try PortError.converting(source.watch(pollable: routine.rawValue))
        notice.attach(source)
        try notice.loop.addOrThrow(source, to: notice.mode)
        if notice.loop.hasEnded { notice.cancel() }
    }

    /// Suspends the task until there may be room: the I/O thread wakes it.
    ///
    /// - Throws: why the wait ended without room; `descriptorLimit` and `systemCallFailed` when room cannot be watched.
    nonisolated(nonsending) func waitForRoom(_ wait: TaskWaiter) async throws(PortError) {
        if !wait.mayWait { throw PortError(.sendTimedOut) }
        let notice = LoopNotification<SendPossibility>(on: try IOThread.loop(), in: .default) { _ in wait.wake() }
        defer { notice.cancel() }
        try watch(notice)
        try await wait.wait()
    }

    /// Suspends the task until the port has answered for good, or ends.
    ///
    /// - Returns: false when no answer came in time.
    nonisolated(nonsending) func waitForCredit(
        _ query: CreditQuery, _ wait: TaskWaiter
    ) async throws(PortError) -> Bool {
        let loop = try IOThread.loop()
        let notice = LoopNotification<SendPossibility>(on: loop, in: .default) { _ in wait.wake() }
        defer { notice.cancel() }
        try watch(notice, query)
        let limit = MonotonicInstant.after(Tuning.creditAnswerTime)
        let timer = RunLoopTimer(after: Tuning.creditAnswerTime) { _ in wait.wake() }
        defer { timer.invalidate() }
        loop.add(timer)
        while !notice.isOver {
            try await wait.wait()
            if !query.isAnswered, .now >= limit { return false }
        }
        return true
    }

    /// Suspends the task for a moment.
    nonisolated(nonsending) func pause(_ wait: TaskWaiter) async throws(PortError) {
        let timer = RunLoopTimer(after: Tuning.timeUntilRetry) { _ in wait.wake() }
        defer { timer.invalidate() }
        try IOThread.loop().add(timer)
        try await wait.wait()
    }
}

/// Delivers a notice when there is room. A run loop waits for readable descriptors; a set that waits for room is
/// readable when there is some.
private final class RoomNotice: SourceRoutine {
    private let connection: SocketConnection  // immutable
    private let port: RemotePort?  // immutable; retains the right while the notice waits for room
    private let notice: LoopNotification<SendPossibility>  // immutable
    private let trigger: EpollSet  // immutable
    /// Waits for the port's grant, where that is missing.
    private let query: CreditQuery?  // immutable
    private let awaitsGrant: Atomic<Bool>
    /// Another connection, whose end ends the wait.
    private let requester: SocketConnection?  // immutable

    init(
        _ connection: SocketConnection, for port: RemotePort?, _ notice: LoopNotification<SendPossibility>,
        _ query: CreditQuery?, endingWith requester: SocketConnection?
    ) throws(PortError) {
        (self.connection, self.port, self.notice, self.query) = (connection, port, notice, query)
        self.requester = requester
        trigger = try PortError.converting(EpollSet())
        let events = query == nil ? connection.roomEvents : .peerClosed
        awaitsGrant = Atomic(query != nil)
        try PortError.converting(trigger.add(connection.descriptor.rawValue, events, key: 0))
        if let query { try PortError.converting(trigger.add(query.rawValue, .readable, key: 1)) }
        // A hang-up is always reported.
        if let requester, requester !== connection {
            try PortError.converting(trigger.add(requester.descriptor.rawValue, [], key: 2))
        }
    }

    var rawValue: CInt { trigger.raw }

    func perform() -> SourceOutcome {
        if connection.isInherited { return .nothing }
        guard let possibility = poll() else { return .nothing }
        notice.notify(possibility)
        return .handled
    }

    /// - Returns: what to deliver now; nil when there is no room.
    private func poll() -> SendPossibility? {
        if requester?.hasHungUp == true { return .deadName }
        let events = (try? sysPoll(connection.descriptor.rawValue, .writable, until: .distantPast)) ?? []
        // After that: a port that ends says so before it makes room by dropping what it has not read.
        if !connection.isPortsEnd, connection.isFoundDead() { return .deadName }
        if !events.isDisjoint(with: [.hangUp, .error]) { return .deadName }
        if let query, awaitsGrant.load(ordering: .relaxed) {
            guard let answer = query.receive() else { return nil }
            if case .waiting = answer { return nil }
            // Without a grant a sender that tries finds out.
            guard (try? connection.sender.accept(answer, to: query, over: connection)) != nil else { return .deadName }
            awaitsGrant.store(false, ordering: .relaxed)
            trigger.remove(query.rawValue)
            try? trigger.modify(connection.descriptor.rawValue, connection.roomEvents, key: 0)
        }
        return events.contains(.writable) ? .possible : nil
    }
}
