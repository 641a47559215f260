// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The protocol that hides the transports. A send right holds one destination: a port of this process (`LocalPort`, in
// memory), a port of another process (`RemotePort`, over a SOCK_SEQPACKET connection), or a port of its sender that had
// ended (`DeadPort`). One object represents one port, so rights to the same port are equal.

package import PortSystem
package import RunLoopCore

package protocol PortEndpoint: AnyObject, Sendable {
    /// Queues the message at the port; waits for room until the deadline. A deadline in the past still sends when there
    /// is room. On failure nothing was delivered; the message may be consumed anyway: a caller that wants to send it
    /// again needs a copy.
    func send(_ offered: inout MachMessage?, until deadline: SendDeadline) throws(PortError)

    /// The same in a task, which blocks no thread while it waits for room.
    nonisolated(nonsending) func send(_ message: MachMessage, waiting wait: TaskWaiter) async throws(PortError)

    /// - Throws: `forkedProcess` when the port, or the connection to it, belongs to the parent.
    func checkProcess() throws(PortError)

    /// Connects to the port, unless it is connected, waiting until the deadline where others wait to connect, too.
    func reach(until deadline: MonotonicInstant) throws(PortError)

    /// The same in a task, which blocks no thread while it waits.
    nonisolated(nonsending) func reach(waiting wait: TaskWaiter) async throws(PortError)

    /// The process that receives from the port. Connects, but does not wait.
    func owner() throws(PortError) -> PeerIdentity

    /// Whether replies come without a loop that receives them.
    var repliesInMemory: Bool { get }

    /// The port's name in descriptions and errors.
    var label: String { get }

    /// Whether the port is gone, as far as this process and the kernel know. Does not connect.
    func pollDeath() -> Bool

    /// As `pollDeath`, but connects, and first reads what has come over the connection. Must not be called under a
    /// lock.
    func isFoundDead() -> Bool

    /// The address under which any process of this user can reach the port; a port of this process is given one.
    func address() throws(PortError) -> PortAddress

    /// Delivers the notice once, when the port is gone.
    ///
    /// - Returns: withdraws the notice. It retains neither the port nor the notice.
    @discardableResult
    func awaitDeath(_ notice: DeathNotice) throws(PortError) -> Cancellation

    /// Delivers the notice once, when a message may be sent or never will be.
    func awaitRoom(_ notice: LoopNotification<SendPossibility>) throws(PortError)

    /// What a send right retains so that its port knows whether there is one; nil when the port does not count rights
    /// this way.
    func makePresence() -> (any SenderPresence)?

    /// From now until `endReplies`, replies are received while `loop` runs in `mode`.
    func beginReplies(on loop: ThreadRunLoop, in mode: RunLoopMode) throws(PortError)

    /// Ends what `beginReplies` began; a reply to `receiver` that is still to come is dropped.
    func endReplies(on loop: ThreadRunLoop, in mode: RunLoopMode, to receiver: any ReplyReceiver)
}

extension PortEndpoint {
    /// The error, about this port. A forked child must not read its parent's port: its locks may be held forever.
    func naming(_ error: PortError) -> PortError {
        if error.code == .forkedProcess { return error }
        return error.at(label.hasPrefix("port of") || label.hasPrefix("port at") ? "the \(label)" : label)
    }

    package func owner() throws(PortError) -> PeerIdentity {
        try checkProcess()
        return .current
    }

    package var repliesInMemory: Bool { true }
    package func reach(until deadline: MonotonicInstant) {}

    func send(_ message: consuming MachMessage, until deadline: SendDeadline) throws(PortError) {
        var offered: MachMessage? = consume message
        try send(&offered, until: deadline)
    }

    nonisolated(nonsending) package func reach(waiting wait: TaskWaiter) async {}
    package func isFoundDead() -> Bool { pollDeath() }
    /// A port of another process counts the connection instead; a dead one counts nothing.
    package func makePresence() -> (any SenderPresence)? { nil }
}

/// What a send right and its copies share, so that their port knows when the last one is gone.
package typealias SenderPresence = AnyObject & Sendable
