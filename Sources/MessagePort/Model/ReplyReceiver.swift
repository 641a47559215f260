// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem
package import RunLoopCore

/// A connection to another process over which a reply may come.
package protocol ReplyConnection: AnyObject, Sendable {
    /// The source by which a loop receives from the connection; nil when it is closed.
    func replySource() throws(PortError) -> RunLoopSource?
    /// Has the loop of this thread poll for replies before it waits for them, until `ThreadRunLoop.endBusyPolling()`.
    func beginBusyPolling(on loop: ThreadRunLoop)
    /// Reports to the peer that the requester with the token no longer waits.
    func giveUp(token: UInt64)
}

/// What waits for a reply.
package protocol ReplyReceiver: AnyObject, Sendable {
    /// Delivers the reply. Waits for room until the deadline, where there is a queue that can be full.
    func deliver(_ message: MachMessage, until deadline: MonotonicInstant) throws(PortError)
    /// Delivers the reply as it came from another process. Never waits; what has no room yet follows when there is.
    func forward(_ message: MachMessage) throws(PortError)
    /// Reports that a message has got as far as its sender wants to know.
    func confirm()
    /// Reports that no reply will come, and why.
    func fail(_ error: PortError)
    /// The reply will come over this connection, so the receiver must receive from it.
    func expectReply(over connection: any ReplyConnection) throws(PortError)

    /// The message that asks is in a ring whose consumer sleeps, and is woken now: the reply may come over the connection
    /// before the requester waits. Called under the connection's send lock.
    func willWakeResponder(over connection: any ReplyConnection)
    /// The message with the reply right was dequeued.
    func noteRead()
    /// The reply right left its message, or its message has outlived the handler: from now on any thread may hold it.
    func noteRightRemoved()
    /// Whether the requester no longer waits for the reply. Reads what has come from it.
    func pollAbandonment() -> Bool
    /// Delivers the notice once, when the requester no longer waits for the reply; at once when that is so already.
    func awaitAbandonment(_ notice: DeathNotice)
    /// Has the connection report, when the requester no longer waits, that the message that asked with the token is
    /// abandoned.
    func passAbandonment(to connection: any ReplyConnection, token: UInt64)
    /// The token of the request that the requester itself sent over the connection, and that `passAbandonment` was
    /// called with; nil when there was none.
    func token(over connection: any ReplyConnection) -> UInt64?
    /// The process to which the request went has answered a probe: only threads that wait can be reached there.
    func didAnswer(_ probe: WaitProbe, about token: RequestToken, hasReturned: Bool)
    /// Has the thread that sends the message with the reply right wait for room. A receiver for which this thread will
    /// wait has the wait followed.
    ///
    /// - Parameters:
    ///   - deadline: when to give up.
    ///   - token: under which the message will ask; zero for a port of this process.
    ///   - wake: ends the wait from any thread, once or more, now or when it is over.
    ///   - wait: waits until a moment; returns whether the wait is over.
    /// - Throws: what `wait` throws.
    func waitForRoom(
        until deadline: MonotonicInstant, toAsk token: UInt64, waking wake: @escaping @Sendable () -> Void,
        _ wait: (MonotonicInstant) throws(PortError) -> Bool
    ) throws(PortError)
}

extension ReplyReceiver {
    /// A receiver of this process always has room.
    package func forward(_ message: MachMessage) throws(PortError) {
        try deliver(message, until: .distantPast)
    }

    package func confirm() { try? deliver(MachMessage(), until: .distantPast) }
    package func willWakeResponder(over connection: any ReplyConnection) {}
    package func noteRead() {}
    package func noteRightRemoved() {}
    package func pollAbandonment() -> Bool { false }
    package func awaitAbandonment(_ notice: DeathNotice) {}
    package func passAbandonment(to connection: any ReplyConnection, token: UInt64) {}
    package func token(over connection: any ReplyConnection) -> UInt64? { nil }
    package func didAnswer(_ probe: WaitProbe, about token: RequestToken, hasReturned: Bool) {}

    package func waitForRoom(
        until deadline: MonotonicInstant, toAsk token: UInt64, waking wake: @escaping @Sendable () -> Void,
        _ wait: (MonotonicInstant) throws(PortError) -> Bool
    ) throws(PortError) {
        _ = try wait(deadline)
    }
}
