// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore

extension RemotePort {
    /// Looks whether there is room whenever the socket says so, or says that its peer is gone.
    package func watchRoom(_ notice: LoopNotice<SendPossibility>) throws(PortError) {
        try connection.checkProcess()
        let watch = try RoomWatch(self)
        let source = RunLoopSource(
            name: "port room", keepsModeAlive: false, routine: RoomRoutine(watch: watch, notice: notice))
        do throws(SystemError) {
            try source.watch(watch.rawValue)
        } catch {
            throw PortError(error)
        }
        notice.attach(source)
        try notice.loop.addOrThrow(source, to: notice.mode)
        if notice.loop.hasEnded { notice.cancel() }
    }
}

/// Tells of room when there is some.
private struct RoomRoutine: SourceRoutine {
    let watch: RoomWatch
    let notice: LoopNotice<SendPossibility>

    func perform() -> Bool {
        guard let possibility = watch.possibility else { return false }
        notice.tell(possibility)
        return true
    }
}

/// A run loop waits for readable descriptors; a set that waits for room is readable when there is some.
private final class RoomWatch: Sendable {
    private let port: RemotePort  // immutable; the right stays as long as somebody waits for room
    private let trigger: EpollSet  // immutable

    init(_ port: RemotePort) throws(PortError) {
        self.port = port
        do throws(SystemError) {
            let trigger = try EpollSet()
            try trigger.add(port.connection.descriptor.rawValue, [.writable, .peerClosed], key: 0)
            self.trigger = trigger
        } catch {
            throw PortError(error)
        }
    }

    var rawValue: CInt { trigger.raw }

    /// What to tell now; nil when there is no room.
    var possibility: SendPossibility? {
        if port.isDead { return .deadName }
        let seen = try? sysPoll(port.connection.descriptor.rawValue, .writable, until: .distantPast)
        return seen?.contains(.writable) == true ? .possible : nil
    }
}
