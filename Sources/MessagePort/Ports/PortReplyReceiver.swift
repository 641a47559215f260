// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

extension MachMessage {
    /// The id of the message that a port gets when a send-once right to it was dropped unused, or died with its holder:
    /// `MACH_NOTIFY_SEND_ONCE`.
    public static let sendOnceNotification: Int32 = 0o107
}

/// Queues the one message of a send-once right at a port.
final class PortReplyReceiver: ReplyReceiver {
    /// What is to be said when the port ends before the reply has come.
    private enum Abandonment {
        case unheard
        case ending(Int)
        case settled
    }

    private let core: LocalPort  // immutable
    private let abandonment = Mutex(Abandonment.unheard)

    init(_ core: LocalPort) {
        self.core = core
    }

    func deliver(_ message: MachMessage, until deadline: MonotonicInstant) throws(PortError) {
        defer { settle() }
        try core.checkProcess()
        if case .dead = admit(message) { throw PortError(.deadName) }
    }

    func fail(_ error: PortError) {
        defer { settle() }
        var notice = MachMessage(id: MachMessage.sendOnceNotification)
        if let code = error.remoteCode, let text = error.remoteText {
            notice = MachMessage(
                id: MachMessage.errorNotification, content: RemoteErrorContent(code: code, text: text))
        }
        _ = admit(notice)
    }

    private func admit(_ message: MachMessage) -> MailboxState.Admission {
        var message = message
        message.cameByReplyRight = true
        var offered: MachMessage? = message
        return core.admit(&offered, exceedingLimit: true)
    }

    var isAbandoned: Bool { core.isDead }

    func watchAbandonment(_ watcher: DeathWatcher) {
        // It fails in a forked child alone, which is told nothing of its parent's ports.
        _ = try? core.watchDeath(watcher)
    }

    /// The end of the port is the end of the wait.
    func passAbandonment(to connection: any ReplyConnection, token: UInt64) {
        let number = core.whenDead { [weak connection] in connection?.giveUp(token: token) }
        guard let number else { return }
        let isLate = abandonment.withLock { abandonment in
            if case .settled = abandonment { return true }
            abandonment = .ending(number)
            return false
        }
        if isLate { core.cancelEnding(number) }
    }

    /// The reply has come, or will not come: the port's end changes nothing any more.
    private func settle() {
        if core.isInherited { return }
        let old = abandonment.withLock { abandonment in
            defer { abandonment = .settled }
            return abandonment
        }
        if case .ending(let number) = old { core.cancelEnding(number) }
    }

    /// The port's own receiver reads the connection from now on.
    func expectReply(over connection: any ReplyConnection) throws(PortError) {
        try core.openSockets().add(over: connection)
    }
}
