// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// Replies over a connection to the message that asked with a token.
final class RemoteReplyReceiver: ReplyReceiver {
    let connection: SocketConnection  // immutable
    let token: UInt64  // immutable

    init(_ connection: SocketConnection, token: UInt64) {
        self.connection = connection
        self.token = token
        connection.willReply(to: token)
    }

    func noteRightRemoved() { connection.noteRightRemoved(token) }

    func deliver(_ message: MachMessage, until deadline: MonotonicInstant) throws(PortError) {
        try connection.checkProcess()
        // After an error `use` settles the request.
        if connection.isAbandoned(token) { throw PortError(.deadName) }
        if connection.isPortsEnd { return try connection.reply(message, answering: token) }
        try connection.send(message, answering: token, until: .instant(deadline))
        connection.didSettleReply(to: token)
    }

    func forward(_ message: MachMessage) throws(PortError) {
        try connection.checkProcess()
        if connection.isAbandoned(token) { throw PortError(.deadName) }
        try connection.reply(message, answering: token)
    }

    /// As a dropped reply: what finds no room now, or no memory, is sent later.
    func confirm() {
        if connection.isInherited { return }
        if connection.isAbandoned(token) { return connection.didSettleReply(to: token) }
        connection.enqueue(OutgoingPacket(header: PacketHeader(kind: .message, answers: token), settles: token))
    }

    func fail(_ error: PortError) {
        if connection.isInherited { return }
        if connection.isAbandoned(token) { return connection.didSettleReply(to: token) }
        if let code = error.remoteCode {
            return connection.failReply(to: token, code: code, text: error.remoteText ?? "")
        }
        let isGone = connection.isPortsEnd && (connection.sink?.isDead ?? true)
        let code = error.code == .replyDropped && isGone ? .peerDied : error.code
        connection.dropReply(to: token, because: code == .replyDropped ? nil : code, delivery: error.delivery)
    }

    /// Reads what has come from the requester first: its loop may be the one that asks.
    func pollAbandonment() -> Bool {
        if connection.isInherited || connection.isAbandoned(token) { return true }
        connection.receiveUnlessReceiving()
        return connection.isAbandoned(token)
    }

    func awaitAbandonment(_ notice: DeathNotice) {
        if connection.isInherited { return }
        connection.awaitAbandonment(of: token) { notice.notify() }
    }

    func passAbandonment(to other: any ReplyConnection, token otherToken: UInt64) {
        connection.awaitAbandonment(of: token) { [weak other] in other?.giveUp(token: otherToken) }
    }

    /// The request is forwarded to another process: the port that got it also receives the answer.
    func expectReply(over other: any ReplyConnection) throws(PortError) {
        try connection.checkProcess()
        guard let sink = connection.sink else { throw PortError(.invalidPort) }
        try sink.openSockets().add(over: other)
    }
}
