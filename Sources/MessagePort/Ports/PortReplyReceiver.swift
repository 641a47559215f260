// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

/// Queues the one message of a send-once right at a port.
final class PortReplyReceiver: ReplyReceiver {
    /// Whether the port's end still abandons a reply.
    private enum Phase {
        case unobserved
        case ending(Int)
        case settled
    }

    private let localPort: LocalPort  // immutable
    private let phase = Mutex(Phase.unobserved)

    init(_ localPort: LocalPort) {
        self.localPort = localPort
    }

    func deliver(_ message: MachMessage, until deadline: MonotonicInstant) throws(PortError) {
        settle()
        try localPort.checkProcess()
        if case .dead = admit(message), !localPort.passOn(message) { throw PortError(.deadName) }
    }

    func fail(_ error: PortError) {
        settle()
        var notice = MachMessage(id: MachMessage.sendOnceNotification)
        if let code = error.remoteCode, let text = error.remoteText {
            notice = MachMessage(errorCode: code, text: text)
        }
        if case .dead = admit(notice) { localPort.passOn(notice) }
    }

    private func admit(_ message: MachMessage) -> MailboxState.Admission {
        var message = message
        message.cameByReplyRight = true
        var offered: MachMessage? = message
        return localPort.admit(&offered, exceedingLimit: true)
    }

    func pollAbandonment() -> Bool { localPort.pollDeath() }

    func awaitAbandonment(_ notice: DeathNotice) {
        // Fails only in a forked child, which gets no notices of its parent's ports.
        _ = try? localPort.awaitDeath(notice)
    }

    /// The end of the port abandons the reply.
    func passAbandonment(to connection: any ReplyConnection, token: UInt64) {
        let number = localPort.whenDead(mayMove: true) { [weak connection] in connection?.giveUp(token: token) }
        guard let number else { return }
        let isLate = phase.withLock { phase in
            if case .settled = phase { return true }
            phase = .ending(number)
            return false
        }
        if isLate { localPort.cancelEnding(number) }
    }

    /// The reply has come, or will not come: the port's end no longer matters. That is so before another thread can
    /// receive the reply.
    private func settle() {
        if localPort.isInherited { return }
        let old = phase.withLock { phase in
            defer { phase = .settled }
            return phase
        }
        if case .ending(let number) = old { localPort.cancelEnding(number) }
    }

    /// From now on the port's own receiver reads the connection; the I/O thread, if the port has left this process.
    func expectReply(over connection: any ReplyConnection) throws(PortError) {
        if localPort.hasLeft {
            if let source = try connection.replySource() { try IOThread.loop().addOrThrow(source, to: .default) }
            return
        }
        try localPort.openSockets().add(over: connection)
    }
}
