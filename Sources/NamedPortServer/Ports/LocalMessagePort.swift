// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort
import Synchronization

/// A port that answers requests, with a name or without. `CFMessagePortCreateLocal`, `NSMessagePort`.
///
/// Schedule it on a run loop, or have a queue call its handler; that keeps it alive, as `CFRunLoopAddSource` does, so
/// this object may be released. Requests that come earlier wait in its queue. When the last reference goes, the port
/// ends: an optimized build releases it after its last use, so store one that is not scheduled in a property, or end
/// with `withExtendedLifetime`.
///
/// `Docs/CFMessagePort.md` names the counterpart of each function of CFMessagePort.
///
/// - Important: Thread safety: any thread. The handler runs on the thread of the run loop, or where the queue calls it.
public final class LocalMessagePort: Sendable {
    /// Called for each message, with the port itself. Its result is the reply, nil being an empty one, unless the
    /// message expects none, or the handler has removed the reply right from the message to reply later, or has replied
    /// with an error. `CFMessagePortCallBack`.
    public typealias Handler = @Sendable (LocalMessagePort, MachMessage) -> [UInt8]?

    /// The port behind it, for what this object does not offer. It ends with this object, which a loop that has the
    /// port retains.
    public let port: MachPort
    let nameServer: PortNameServer  // immutable
    let heldName = Mutex<String?>(nil)

    /// Makes a port without a name. ``setName(_:)`` can give it one later.
    ///
    /// - Parameters:
    ///   - nameServer: where it will be registered.
    ///   - queueLimit: how many messages may wait in the queue.
    ///   - handler: called for each message. What it captures is released when the port ends, after a handler that is
    ///     under way.
    public init(
        nameServer: PortNameServer = .shared, queueLimit: Int = MachPort.defaultQueueLimit, handler: @escaping Handler
    ) {
        self.nameServer = nameServer
        port = MachPort(queueLimit: queueLimit)
        port.core.setOwner(self)
        port.setHandler { [weak self] _, message in
            // The handler's reference to this object is released before the reply is sent.
            guard let reply = self.map({ handler($0, message) }) else { return }
            // The requester may have gone meanwhile: then the reply has no receiver.
            if message.expectsReply { try? message.reply(MachMessage(id: message.id, bytes: reply ?? [])) }
        }
    }

    /// Makes a port and gives it a name.
    ///
    /// - Parameters:
    ///   - name: 1 to 128 bytes of UTF-8, any but NUL; no other live port may have it.
    ///   - nameServer: where the name is registered.
    ///   - queueLimit: how many messages may wait in the queue.
    ///   - handler: called for each message. What it captures is released when the port ends, after a handler that is
    ///     under way.
    /// - Throws: as ``PortNameServer/register(_:name:)``.
    public convenience init(
        name: String, nameServer: PortNameServer = .shared, queueLimit: Int = MachPort.defaultQueueLimit,
        handler: @escaping Handler
    ) throws(PortError) {
        self.init(nameServer: nameServer, queueLimit: queueLimit, handler: handler)
        try setName(name)
    }

    /// Makes a port and gives it the name and the socket that a supervisor, such as systemd, declared for this process.
    ///
    /// - Parameters:
    ///   - name: the declared name.
    ///   - nameServer: the name server in whose directory it is declared.
    ///   - queueLimit: how many messages may wait in the queue.
    ///   - handler: called for each message. What it captures is released when the port ends, after a handler that is
    ///     under way.
    /// - Throws: as ``PortNameServer/checkIn(_:name:)``: ``/MessagePort/PortError/Code/nameNotDeclared`` when this
    ///   process was started without a socket for the name.
    public convenience init(
        checkingInAs name: String, nameServer: PortNameServer = .shared,
        queueLimit: Int = MachPort.defaultQueueLimit, handler: @escaping Handler
    ) throws(PortError) {
        self.init(nameServer: nameServer, queueLimit: queueLimit, handler: handler)
        try checkIn(as: name)
    }

    deinit {
        port.invalidate()
    }

    /// Whether the port can receive.
    public var isValid: Bool { port.isValid }

    /// Ends the port. A reply that its handler is about to give is still sent.
    ///
    /// The first call does all of it, and the name is free when it returns. Any other call returns at once: the port is
    /// invalid then, but the thread of the first may still be freeing the name. See
    /// ``/MessagePort/MachPort/invalidate()``.
    public func invalidate() {
        port.invalidate()
    }
}

extension LocalMessagePort: Hashable {
    /// Local ports are equal when they are the same object.
    public static func == (left: LocalMessagePort, right: LocalMessagePort) -> Bool { left === right }

    /// Hashes the object's identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
