// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort
import PortSystem
import Synchronization

extension LocalMessagePort {
    /// Hands the port over to another process of this user, for example a new version of the program: its names, its
    /// queue, its clients.
    ///
    /// Clients notice nothing: no connection of this user's processes is refused, no request is lost, and the order of each
    /// sender's messages stays. Where a peer policy admits other users, those that connect before the successor has set its
    /// own are refused. Before, the handlers under way return, and replies that are owed for messages which were taken are sent;
    /// messages in the queue are the successor's. Afterwards this object is invalid, without a call of its invalidation
    /// handler, and this process may end. Its own rights to the port lead to the successor.
    ///
    /// The successor gets a message with the receive right (``/MessagePort/MachMessage/receiveRights``), and makes a port
    /// of it with ``init(takingOver:nameServer:handler:)``. `Docs/LifeCycle.md` says what becomes of what.
    ///
    /// - Parameters:
    ///   - successor: a right to a port of the successor that accepts receive rights
    ///     (``/MessagePort/MachPort/setAcceptsReceiveRights(_:)``). A handler of this port must not be what calls this.
    ///   - limit: how long to wait for what has to end before, and for room.
    /// - Throws: ``/MessagePort/PortError/Code/sendTimedOut`` when the port was not quiet in time;
    ///   ``/MessagePort/PortError/Code/notTransferable``, also when the successor does not take it; the errors of
    ///   ``/MessagePort/SendRight/send(_:within:)-6xcud``. Then this port goes on, as if nothing had happened.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    public func handOver(to successor: SendRight, within limit: Duration = .seconds(10)) throws(PortError) {
        try port.handOver(to: successor, within: limit)
    }

    /// The same in a task, which blocks no thread while it waits.
    ///
    /// - Parameters:
    ///   - successor: a right to a port of the successor.
    ///   - limit: how long to wait for what has to end before, and for room.
    /// - Throws: what the blocking form throws; ``/MessagePort/PortError/Code/cancelled``.
    nonisolated(nonsending) public func handOver(
        to successor: SendRight, within limit: Duration = .seconds(10)
    ) async throws(PortError) {
        try await port.handOver(to: successor, within: limit)
    }

    /// Whether other processes of this user may ask that the port be handed over; initially they may not.
    public var allowsHandOver: Bool { port.allowsHandOver }

    /// Sets whether other processes of this user may ask that the port be handed over to a successor, for example with
    /// `portctl handover`.
    ///
    /// The library hands it over when such a process asks, as ``handOver(to:within:)-4w8vm`` does. The successor
    /// decides anew whether it allows that.
    ///
    /// - Parameters:
    ///   - allows: false ends what was allowed before.
    ///   - handler: called once, in a task, when the port is the successor's. It may end the program.
    public func setAllowsHandOver(_ allows: Bool, whenHandedOver handler: (@Sendable () -> Void)? = nil) {
        port.setAllowsHandOver(allows, whenHandedOver: handler)
    }

    /// Takes over a port that another process has handed over.
    ///
    /// Its messages wait until the new port is scheduled. It has the limits that it had. The peer policy is `sameUser`: one
    /// that the former owner had does not travel, so set it before you schedule the port. Nor does travel whether the port
    /// may be watched, or handed over.
    ///
    /// - Parameters:
    ///   - message: a message with a receive right. Of several the first is taken over; the message's end ends the others.
    ///   - nameServer: where the port's names are registered; those of another directory are held until the port ends.
    ///   - handler: called for each message. What it captures is released when the port ends, after a handler that is
    ///     under way.
    /// - Throws: ``/MessagePort/PortError/Code/invalidPort`` when the message has no receive right, or its port has
    ///   ended; as ``PortNameServer/register(_:name:)`` when the names cannot be held. The message still has the port
    ///   then, with what is in its queue: try again.
    public convenience init(
        takingOver message: MachMessage, nameServer: PortNameServer = .shared, handler: @escaping Handler
    ) throws(PortError) {
        guard let port = message.receiveRights.first, port.isValid else { throw PortError(.invalidPort) }
        // Before this object owns the port: after an error the message still has it.
        let names = try nameServer.adoptNames(of: port)
        self.init(port, nameServer, handler)
        heldName.withLock { $0 = names.first?.string }
    }

    /// Takes over the port for which the launcher has started this process, such as `portctl handover`: checks in at the
    /// launcher, and waits until the port has come.
    ///
    /// ```swift
    /// let port =
    ///     if let launcher = try SendRight.bootstrap() {
    ///         try LocalMessagePort(takingOverFrom: launcher, handler: answer)
    ///     } else {
    ///         try LocalMessagePort(name: "org.example.service", handler: answer)
    ///     }
    /// ```
    ///
    /// - Parameters:
    ///   - launcher: the right to the port of the launcher, ``/MessagePort/SendRight/bootstrap()``.
    ///   - nameServer: where the port's names are registered.
    ///   - limit: how long to wait for the port.
    ///   - handler: called for each message.
    /// - Throws: as ``/MessagePort/SendRight/checkIn(_:components:within:)-6lfrz``;
    ///   ``/MessagePort/PortError/Code/replyTimedOut`` when no port came;
    ///   as ``init(takingOver:nameServer:handler:)``.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    public convenience init(
        takingOverFrom launcher: SendRight, nameServer: PortNameServer = .shared, within limit: Duration = .seconds(10),
        handler: @escaping Handler
    ) throws(PortError) {
        let message = try Self.receiveRight(from: launcher, within: limit)
        try self.init(takingOver: message, nameServer: nameServer, handler: handler)
    }

    /// A port for one message, with a port of any size.
    private static func makeCarrier() -> MachPort {
        let carrier = MachPort()
        var limits = PeerLimits.standard
        (limits.queuedBytes, limits.queuedDescriptors) = (MessageLimits.payload, sysDescriptorLimit())
        carrier.setPeerLimits(limits)
        carrier.setAcceptsReceiveRights(true)
        return carrier
    }

    /// Checks in at the launcher, and waits until the port has come.
    package static func receiveRight(from launcher: SendRight, within limit: Duration) throws(PortError) -> MachMessage
    {
        let (carrier, end) = (makeCarrier(), MonotonicInstant.after(limit))
        defer { carrier.invalidate() }
        try launcher.checkIn(carrier, within: limit)
        let rest = max(.zero, MonotonicInstant.now.duration(to: end))
        if let message = try carrier.receive(within: rest) { return message }
        // One that was taken at this moment is in the queue.
        carrier.endArrivals()
        guard let message = try carrier.tryReceive() else { throw PortError(.replyTimedOut) }
        return message
    }

    /// The same in a task, which blocks no thread while it waits.
    ///
    /// - Parameters:
    ///   - launcher: the right to the port of the launcher, ``/MessagePort/SendRight/bootstrap()``.
    ///   - nameServer: where the port's names are registered.
    ///   - limit: how long to wait for the port.
    ///   - handler: called for each message.
    /// - Throws: what the blocking form throws; ``/MessagePort/PortError/Code/cancelled``, unless the port has come
    ///   already.
    nonisolated(nonsending) public convenience init(
        takingOverFrom launcher: SendRight, nameServer: PortNameServer = .shared, within limit: Duration = .seconds(10),
        handler: @escaping Handler
    ) async throws(PortError) {
        let (carrier, end) = (Self.makeCarrier(), MonotonicInstant.after(limit))
        defer { carrier.invalidate() }
        try await launcher.checkIn(carrier, within: limit)
        // Ends the sequence, when no port has come.
        let timer = RunLoopTimer(after: max(.zero, MonotonicInstant.now.duration(to: end))) { _ in
            carrier.endArrivals()
            if carrier.queueCount == 0 { carrier.invalidate() }
        }
        defer { timer.invalidate() }
        try IOThread.loop().add(timer)
        var messages = carrier.messages.makeAsyncIterator()
        var message = try await messages.next()
        if message == nil {
            // One that was taken at this moment is in the queue. Its sender has been notified, so a cancelled task has it.
            carrier.endArrivals()
            message = try? carrier.tryReceive()
        }
        guard let message else { throw PortError(Task.isCancelled ? .cancelled : .replyTimedOut) }
        try self.init(takingOver: message, nameServer: nameServer, handler: handler)
    }
}
