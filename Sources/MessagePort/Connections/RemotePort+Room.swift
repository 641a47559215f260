// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore

extension RemotePort {
    package func watchRoom(_ notice: LoopNotification<SendPossibility>) throws(PortError) {
        do throws(PortError) {
            guard let connection = try reachedUnlessDead() else { return notice.tell(.deadName) }
            try connection.watchRoom(notice, for: self)
        } catch {
            guard error.code == .sendTimedOut else { throw error }
            // Too many wait to be accepted, and nothing tells of a place: whoever finds none asks again. The timer
            // keeps the notice, as nobody else has to.
            notice.loop.add(
                RunLoopTimer(after: Self.timeUntilRetry) { _ in notice.tell(.possible) }, to: notice.mode)
        }
    }
}

extension SocketConnection {
    /// Looks whether there is room whenever the socket says so, or says that its peer is gone.
    ///
    /// - Parameters:
    ///   - notice: who is told, once.
    ///   - port: the port whose right stays as long as the notice waits.
    /// - Throws: `descriptorLimit` and `systemCallFailed` when the kernel cannot watch; the notice is still the
    ///   caller's.
    func watchRoom(_ notice: LoopNotification<SendPossibility>, for port: RemotePort? = nil) throws(PortError) {
        let watch = try RoomWatch(self, for: port)
        let source = RunLoopSource(
            name: "port room", keepsModeAlive: false, routine: RoomRoutine(watch: watch, notice: notice))
        do throws(SystemError) {
            try source.watch(pollable: watch.rawValue)
        } catch {
            throw PortError(error)
        }
        notice.attach(source)
        try notice.loop.addOrThrow(source, to: notice.mode)
        if notice.loop.hasEnded { notice.cancel() }
    }

    /// Suspends the task until there may be room: the shared thread wakes it.
    ///
    /// - Throws: why the wait ended without; `descriptorLimit` and `systemCallFailed` when room cannot be watched for.
    nonisolated(nonsending) func waitForRoom(_ wait: SendWait) async throws(PortError) {
        if !wait.mayWait { throw PortError(.sendTimedOut) }
        let notice = LoopNotification<SendPossibility>(on: try IOThread.loop(), in: .default) { _ in wait.wake() }
        defer { notice.cancel() }
        try watchRoom(notice)
        try await wait.wait()
    }
}

/// Tells of room when there is some.
private struct RoomRoutine: SourceRoutine {
    let watch: RoomWatch
    let notice: LoopNotification<SendPossibility>

    func perform() -> SourceOutcome {
        guard let possibility = watch.possibility else { return .nothing }
        notice.tell(possibility)
        return .handled
    }
}

/// A run loop waits for readable descriptors; a set that waits for room is readable when there is some.
private final class RoomWatch: Sendable {
    private let connection: SocketConnection  // immutable
    private let port: RemotePort?  // immutable; the right stays as long as somebody waits for room
    private let trigger: EpollSet  // immutable

    init(_ connection: SocketConnection, for port: RemotePort?) throws(PortError) {
        self.connection = connection
        self.port = port
        do throws(SystemError) {
            let trigger = try EpollSet()
            // The end of a port closes its connections for receiving, which would look like the peer's end there.
            let events: EpollEvents = connection.port == nil ? [.writable, .peerClosed] : .writable
            try trigger.add(connection.descriptor.rawValue, events, key: 0)
            self.trigger = trigger
        } catch {
            throw PortError(error)
        }
    }

    var rawValue: CInt { trigger.raw }

    /// What to tell now; nil when there is no room.
    var possibility: SendPossibility? {
        if connection.isInherited { return .deadName }
        if connection.port == nil, connection.isFoundDead() { return .deadName }
        let seen = (try? sysPoll(connection.descriptor.rawValue, .writable, until: .distantPast)) ?? []
        if !seen.isDisjoint(with: [.hangUp, .error]) { return .deadName }
        return seen.contains(.writable) ? .possible : nil
    }
}
