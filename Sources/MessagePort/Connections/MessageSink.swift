// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore

/// A port as its connections see it: what receives their messages, and counts their peers. The only one is `LocalPort`;
/// a port's sockets and connections know no more of it.
protocol MessageSink: AnyObject, Sendable {
    // MARK: The port

    var isDead: Bool { get }
    var sockets: PortSockets? { get }
    func openSockets() throws(PortError) -> PortSockets
    var peerRules: PeerConfiguration { get }
    var statistics: PortStatistics { get }

    // MARK: Receivers

    /// How many packets may be read for one message.
    var receiveBudget: ReceiveBudget { get }
    /// The source that alone receives from the port, if there is one.
    var onlySource: RunLoopSource? { get }
    /// Whether messages were received other than by the port's sources.
    var isReceivedElsewhere: Bool { get }
    func beginExclusiveReceive(inGeneration generation: UInt64)
    func cancelExclusiveReceive()

    // MARK: Messages

    /// Whether a message may be read now. If not, the port's sockets are read again when there is room.
    func hasRoomForSockets() -> Bool
    /// Queues a message that answers nothing; false, and the message stays, when the port has ended.
    func admitFromSocket(_ message: inout MachMessage?, _ hasRoom: inout Bool) -> Bool
    /// Whether several messages may be queued at once.
    var acceptsBatches: Bool { get }
    func reserveRoom(atMost most: Int) -> Int
    func fillReserved(by messages: inout MessageBuffer, byteCount: Int) -> Bool
    /// Counts a message that was larger than the port takes as dropped.
    func didDropTooLarge()

    // MARK: Senders

    func willAccept()
    func didAccept()
    func clientDidConnect()
    func clientDidNotConnect()
    func clientDidDisconnect()
    /// Adds a connection over which a process gets copies of the port's messages.
    ///
    /// - Returns: whether it gets them.
    func addTap(_ connection: SocketConnection, byteLimit: Int) -> Bool
}
