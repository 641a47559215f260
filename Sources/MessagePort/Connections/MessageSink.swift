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
    /// Whether the queue has fewer messages than its limit and that many.
    func isQueueShorter(thanLimitAnd excess: Int) -> Bool
    /// Queues a message that answers nothing; false, and the message stays, when the port has ended.
    func admitFromSocket(_ message: inout MachMessage?, _ hasRoom: inout Bool, _ credit: ReceivedCredit?) -> Bool
    /// Whether several messages may be queued at once.
    var acceptsBatches: Bool { get }
    func reserveRoom(atMost most: Int, over credit: ReceivedCredit?) -> (slots: Int, isLow: Bool)
    func fillReserved(by messages: inout MessageBuffer, byteCount: Int, low credit: ReceivedCredit?) -> Bool
    /// Counts a message that was larger than the port takes as dropped.
    func didDropTooLarge()

    // MARK: Credits

    /// Begins to count what may be sent over a connection.
    ///
    /// - Returns: the index of its account; nil when the number is another connection's, or the port has ended.
    func openCredit(_ key: UInt64, of owner: PeerID) -> Int?
    /// A connection is closed over which messages have come, or a question.
    func endCredit(of connection: SocketConnection)
    /// A message for the port has come, and is not queued.
    func didReceiveUnqueued(_ credit: ReceivedCredit)
    /// Answers a sender that has asked for room over a connection.
    func answer(_ question: CreditQuestion, over connection: SocketConnection)

    // MARK: Waits

    /// A peer asks whether a thread may answer its request: see `WaitProbes`.
    func follow(_ probe: WaitProbe, about token: UInt64, over connection: SocketConnection)

    // MARK: Senders

    func willAccept()
    /// Ends an accept, after which perhaps no client waited any more.
    func didAccept(foundNone: Bool)
    func clientDidConnect()
    func clientDidNotConnect()
    func clientDidDisconnect()
    /// A client has sent the read end of a pipe, whose ends travel with rights.
    func addPipe(_ key: UInt64)
    /// The last end of a pipe is gone.
    func pipeDidHangUp(_ key: UInt64)
    /// Adds a connection over which a process gets copies of the port's messages.
    ///
    /// - Returns: whether it gets them.
    func addTap(_ connection: SocketConnection, byteLimit: Int) -> Bool
    /// Whether other processes of this user may send it receive rights.
    var acceptsReceiveRights: Bool { get }
    /// Begins to hand the port over, as its owner allows it. The answer goes over the connection.
    ///
    /// - Returns: false when the owner does not.
    func beginHandOver(_ question: HandOverQuestion, over connection: SocketConnection) -> Bool
}
