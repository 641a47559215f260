// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// What one other process may use at a port, and what the processes of one other user may, so that none starves the
/// others.
///
/// A process that reaches a limit in messages, bytes or descriptors gets no error: the port reads nothing more from it
/// until some of its messages have been received, and its replies have been read; its senders wait meanwhile, as at a
/// full queue. Others are served. Rights that the port's own process uses in memory are not counted.
///
/// - Important: Source of the behaviour: none of the originals. Mach limits messages only, not what is in them.
public struct PeerLimits: Hashable, Sendable {
    /// The limits that a port has unless it is given others, computed when it gets its sockets. Those of connections
    /// and descriptors follow from the number of descriptors that this process may have then (`ulimit -n`).
    public static var standard: PeerLimits { PeerLimits() }

    /// The most connections: 256, or an eighth of the descriptors that this process may have. A process of this library
    /// makes one, however many rights it has. Beyond it the newest is refused: ``PortError/Code/tooManyConnections``.
    public var connections: Int

    /// The most of its messages in the port's queue, or on their way into it. Nil, the default: an equal share of the
    /// queue's limit for each process that has messages there, with one share reserved for those that are connected and
    /// have none; and all of it for a process that is alone with the port. Beyond it nothing is read from the process
    /// until half of it is free. A port whose policy drops messages has room for all of them, so there nil is no limit.
    public var queuedMessages: Int?

    /// The most bytes of its messages in the port's queue, or on their way into it, and of replies to it that it has
    /// not read: 64 MiB. What a message takes in memory besides its bytes counts too: 256 for the message, 72 for each
    /// component, 256 more for a right. So does memory that a reply has lent to it and that it has not returned; what
    /// would take more than half of the limit is copied. A message is received whole, so one may exceed the limit.
    public var queuedBytes = 64 << 20

    /// The most descriptors in its messages in the port's queue, or on their way into it, in replies to it that it has
    /// not read, and of those that it sent and that are no longer used, but not closed yet: 512, or a quarter of the
    /// descriptors that this process may have. The descriptors of one message may exceed the limit. It may have as many
    /// besides that count the rights that it has passed on (``MachPort/notifyWhenNoSenders(on:in:_:)``).
    public var queuedDescriptors: Int

    /// The most bytes of one message, eight for each component included: 256 MiB, and ``MessageLimits/payload`` at
    /// most. Beyond it the message is not received; a request fails with ``PortError/Code/messageTooLarge``, another
    /// message is counted in ``MachPort/droppedMessageCount``. Replies to the port's own requests have the largest
    /// limit.
    public var messageBytes = 256 << 20

    /// How many processes' worth of connections, bytes, descriptors and, where they are set, messages the processes of
    /// one other user may use together: 4. The port's own user has no such limit. Beyond it the newest connection is
    /// refused, or nothing is read from any of them until there is room, as beyond that of a process. The slots of the
    /// queue are shared between users first, then between the processes of each.
    public var processesOfUser = 4

    /// The standard limits, to be changed.
    public init() {
        let shares = DescriptorShares()
        (connections, queuedDescriptors) = (shares.connections, shares.queued)
    }

    /// Whether each is at least 1, and a message no larger than the wire format's largest.
    var isPossible: Bool {
        min(connections, queuedMessages ?? 1, queuedBytes, queuedDescriptors, messageBytes, processesOfUser) > 0
            && messageBytes <= MessageLimits.payload
    }
}

/// Which other processes a port talks to, and what each may use.
final class PeerConfiguration: Sendable {
    static var standard: PeerConfiguration { PeerConfiguration(policy: .sameUser, limits: .standard) }

    let policy: PeerPolicy  // immutable
    let limits: PeerLimits  // immutable

    init(policy: PeerPolicy, limits: PeerLimits) {
        self.policy = policy
        self.limits = limits
    }
}
