// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

extension MachMessage {
    /// The id of the message that a port gets when a send-once right to it was dropped unused, or died with its holder:
    /// `MACH_NOTIFY_SEND_ONCE`.
    public static let sendOnceNotification: Int32 = 0o107
}

/// Queues the one message of a send-once right at a port.
final class PortReplyReceiver: ReplyReceiver {
    private let core: PortCore  // immutable

    init(_ core: PortCore) {
        self.core = core
    }

    func deliver(_ message: MachMessage, until deadline: MonotonicInstant) throws(PortError) {
        try core.checkProcess()
        if case .dead = admit(message) { throw PortError(.deadName) }
    }

    func fail(_ error: PortError) {
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
        return core.admit(message, exceedingLimit: true)
    }

    var isAbandoned: Bool { core.isDead }

    func watchAbandonment(_ watcher: DeathWatcher) {
        // It fails in a forked child alone, which is told nothing of its parent's ports.
        _ = try? core.watchDeath(watcher)
    }

    /// The port's own receiver reads the connection from now on.
    func expectReply(over connection: SocketConnection) throws(PortError) {
        try core.openSockets().add(connection)
    }
}
