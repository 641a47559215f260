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

    /// Connects to the port, unless it is connected, waiting until the deadline where others wait to connect, too; or
    /// until the name of a right to a name has an owner.
    ///
    /// - Returns: the right to the owner of the name; nil for a port, which is itself what a request is for.
    @discardableResult
    func reach(until deadline: MonotonicInstant) throws(PortError) -> SendRight?

    /// The same in a task, which blocks no thread while it waits.
    @discardableResult
    nonisolated(nonsending) func reach(waiting wait: TaskWaiter) async throws(PortError) -> SendRight?

    /// Whether a name led to this owner, which is gone: the next use has the next owner, or says why there is none.
    func outlives(_ owner: any PortEndpoint) -> Bool

    /// Where what is sent goes. Never waits.
    func state() -> SendRight.State

    /// Why the port, which is gone, is gone, as far as this process knows. Must not be called under a lock.
    func knownEndReason() -> PortEndReason

    /// Delivers the notice once, when the state is another one.
    ///
    /// - Returns: withdraws the notice. It retains neither the port nor the notice.
    func awaitChange(
        _ notice: LoopNotification<SendRight.State>, from state: SendRight.State
    ) throws(PortError) -> Cancellation

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

    /// What a send right retains so that its port knows whether there is one; nil when nothing counts it. It may have
    /// come with the end of a pipe.
    func makePresence(with end: ReceivedEnd?) -> (any SenderPresence)?

    /// The end of a pipe that travels with a right to another process: so the port counts it there. Asked while there
    /// is the right, which retains `presence`.
    ///
    /// - Returns: nil when the port does not count rights of other processes this way.
    /// - Throws: why there is no end; `sendTimedOut` when its port cannot get the read end of a new pipe now.
    func export(_ presence: (any SenderPresence)?) throws(PortError) -> SharedDescriptor?

    /// Whether a right without an end of its own travels with one.
    var exportsEnds: Bool { get }

    /// The right that travels to another process in place of a right to a name: that to the present owner.
    ///
    /// - Returns: nil for a port, whose right travels itself.
    /// - Throws: `invalidPort` when there is no owner.
    func rightToSend() throws(PortError) -> SendRight?

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
    package func reach(until deadline: MonotonicInstant) -> SendRight? { nil }
    package func outlives(_ owner: any PortEndpoint) -> Bool { false }
    package func state() -> SendRight.State { isFoundDead() ? .invalid(knownEndReason()) : .connected }
    package func knownEndReason() -> PortEndReason { .unknown }

    package func awaitChange(
        _ notice: LoopNotification<SendRight.State>, from known: SendRight.State
    ) throws(PortError) -> Cancellation {
        if case .invalid = known { return {} }  // for good
        if known != .connected, state() == .connected {
            notice.notify(.connected)
            return {}
        }
        // Also of a port that is gone: its reason may be still to come.
        return try awaitDeath(DeathNotice(loop: notice.loop, mode: notice.mode) { notice.notify(.invalid($0)) })
    }

    func send(_ message: consuming MachMessage, until deadline: SendDeadline) throws(PortError) {
        var offered: MachMessage? = consume message
        try send(&offered, until: deadline)
    }

    nonisolated(nonsending) package func reach(waiting wait: TaskWaiter) async -> SendRight? { nil }
    package func isFoundDead() -> Bool { pollDeath() }
    /// The end that came with a right goes on with it.
    package func makePresence(with end: ReceivedEnd?) -> (any SenderPresence)? { end?.end }
    package func export(_ presence: (any SenderPresence)?) -> SharedDescriptor? { presence as? SharedDescriptor }
    package var exportsEnds: Bool { false }
    package func rightToSend() -> SendRight? { nil }
}

/// The end of a pipe that came with a right.
package struct ReceivedEnd: Sendable {
    let end: SharedDescriptor
    let pipe: PipeIdentity
    let sender: PeerID?

    /// Nil when the descriptor is no write end of a pipe.
    init?(_ end: SharedDescriptor, from sender: PeerID? = nil) {
        guard let pipe = PresencePipe.identity(ofWriteEnd: end) else { return nil }
        self.init(end, of: pipe, from: sender)
    }

    init(_ end: SharedDescriptor, of pipe: PipeIdentity, from sender: PeerID? = nil) {
        (self.end, self.pipe, self.sender) = (end, pipe, sender)
    }
}

/// What a send right and its copies share, so that their port knows when the last one is gone.
package typealias SenderPresence = AnyObject & Sendable
