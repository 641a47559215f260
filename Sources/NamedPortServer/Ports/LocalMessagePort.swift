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
    public convenience init(
        nameServer: PortNameServer = .shared, queueLimit: Int = MachPort.defaultQueueLimit, handler: @escaping Handler
    ) {
        self.init(MachPort(queueLimit: queueLimit), nameServer, handler)
    }

    /// Has the port call the handler.
    init(_ port: MachPort, _ nameServer: PortNameServer, _ handler: @escaping Handler) {
        self.nameServer = nameServer
        self.port = port
        port.localPort.setOwner(self)
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
        try Self.naming.withLock { (_) throws(PortError) in
            try nameServer.checkIn(port, name: name)
            heldName.withLock { $0 = name }
        }
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

// MARK: - Naming

extension LocalMessagePort {
    /// Held while ports of this process get their names, so that when a name is found taken, its port is registered
    /// completely.
    private static let naming = Mutex(())

    /// Its name; after its end, the one that it had. Nil when it has none. `CFMessagePortGetName`.
    public var name: String? { port.localPort.isInherited ? nil : heldName.withLock { $0 } }

    /// Gives the port another name, its first one, or none. `CFMessagePortSetName`.
    ///
    /// It stays the same port: its queue, the loops that serve it, and the rights to it stay as they are. The old name
    /// is free when this returns. At no moment is the port without a name. The name that it has already changes
    /// nothing.
    ///
    /// - Parameter name: 1 to 128 bytes of UTF-8, any but NUL; nil for none.
    /// - Throws: as ``PortNameServer/register(_:name:)``. Then the port has its old name.
    public func setName(_ name: String?) throws(PortError) {
        try port.localPort.checkProcess()
        guard let name else { return releaseName() }
        let newName = try PortName(name)
        try Self.naming.withLock { (_) throws(PortError) in
            // The name may have been unregistered, or its file removed.
            if newName == oldName, nameServer.holds(newName, for: port.localPort) { return }
            try nameServer.register(port, name: name)
            if let oldName, oldName != newName { nameServer.free(oldName, of: port.localPort) }
            heldName.withLock { $0 = name }
        }
    }

    /// The port of this process with a name; a new one when no live port has it. `CFMessagePortCreateLocal`.
    ///
    /// The first call makes the port: the handler of a later call is dropped, as CFMessagePort drops callback and
    /// context when it sets `*shouldFreeInfo` to true.
    ///
    /// - Parameters:
    ///   - name: 1 to 128 bytes of UTF-8, any but NUL.
    ///   - nameServer: where the name is registered.
    ///   - queueLimit: how many messages may wait in the queue of a new port.
    ///   - handler: called for each message of a new port.
    /// - Returns: the port, and whether it is new.
    /// - Throws: as ``PortNameServer/register(_:name:)``: ``/MessagePort/PortError/Code/nameTaken`` when another
    ///   process has the name, or a port of this process that is no ``LocalMessagePort``.
    public static func shared(
        name: String, nameServer: PortNameServer = .shared, queueLimit: Int = MachPort.defaultQueueLimit,
        handler: @escaping Handler
    ) throws(PortError) -> (port: LocalMessagePort, isNew: Bool) {
        let made = LocalMessagePort(nameServer: nameServer, queueLimit: queueLimit, handler: handler)
        let portName = try PortName(name)
        let existing = try naming.withLock { (_) throws(PortError) -> LocalMessagePort? in
            do throws(PortError) {
                try nameServer.register(made.port, name: name)
            } catch {
                if error.code == .nameTaken, let known = try? nameServer.ownPort(named: portName)?.owningObject {
                    return known as? LocalMessagePort
                }
                throw error
            }
            made.heldName.withLock { $0 = name }
            return nil
        }
        if let existing { return (existing, false) }
        return (made, true)
    }

    private func releaseName() {
        Self.naming.withLock { _ in
            if let oldName { nameServer.free(oldName, of: port.localPort) }
            heldName.withLock { $0 = nil }
        }
    }

    private var oldName: PortName? { name.flatMap { try? PortName($0) } }
}

// MARK: - Serving

extension LocalMessagePort {
    /// Makes a run loop call the handler for this port's messages.
    ///
    /// - Parameters:
    ///   - loop: the loop.
    ///   - mode: a mode of it, or ``/RunLoopCore/RunLoopMode/common``.
    /// - Throws: as ``/MessagePort/MachPort/schedule(on:in:)``.
    public func schedule(on loop: ThreadRunLoop, in mode: RunLoopMode = .default) throws(PortError) {
        try port.schedule(on: loop, in: mode)
    }

    /// Removes the port from a mode of a run loop. Messages stay in the queue.
    ///
    /// - Parameters:
    ///   - loop: the loop.
    ///   - mode: the mode that it was scheduled in.
    public func unschedule(from loop: ThreadRunLoop, in mode: RunLoopMode = .default) {
        port.unschedule(from: loop, in: mode)
    }

    /// The source with which a run loop receives from this port. `CFMessagePortCreateRunLoopSource`.
    ///
    /// - Parameter order: its order among sources that are ready at the same time, when this call makes it.
    /// - Returns: the source; the same each time.
    /// - Throws: as ``/MessagePort/MachPort/runLoopSource(order:)``.
    public func runLoopSource(order: Int = 0) throws(PortError) -> RunLoopSource {
        try port.runLoopSource(order: order)
    }

    /// Has the handler called in blocks, for example of a dispatch queue: `setDispatcher { queue.async(execute: $0) }`.
    /// `CFMessagePortSetDispatchQueue`.
    ///
    /// - Parameter dispatcher: called for each block; nil for none.
    /// - Throws: as ``/MessagePort/MachPort/setDispatcher(_:)``.
    public func setDispatcher(_ dispatcher: MachPort.Dispatcher?) throws(PortError) {
        try port.setDispatcher(dispatcher)
    }

    /// Sets the handler that is called once when the port becomes invalid, on the thread that invalidates it.
    /// `CFMessagePortSetInvalidationCallBack`.
    ///
    /// - Parameter handler: called at once when the port is invalid already; nil for nothing.
    public func setInvalidationHandler(_ handler: (@Sendable () -> Void)?) {
        port.setInvalidationHandler(handler)
    }

    /// Sets the handler that is called once on a run loop when the port becomes invalid.
    ///
    /// - Parameters:
    ///   - loop: the loop on which to call the handler.
    ///   - mode: the mode in which to call the handler.
    ///   - handler: called once on the loop's thread; soon, when the port is invalid already.
    public func setInvalidationHandler(
        on loop: ThreadRunLoop, in mode: RunLoopMode = .common, _ handler: @escaping @Sendable () -> Void
    ) {
        port.setInvalidationHandler(on: loop, in: mode, handler)
    }

    /// Whether there is a handler to call when the port becomes invalid. `CFMessagePortGetInvalidationCallBack`.
    public var hasInvalidationHandler: Bool { port.hasInvalidationHandler }
}

// MARK: - CurrentLoop

// For code that has a thread of its own: the loop is that thread's. Code in tasks names a loop instead.
extension LocalMessagePort {
    /// Makes the current thread's run loop call the handler for this port's messages. See ``schedule(on:in:)``.
    ///
    /// - Parameter mode: a mode of the loop, or ``/RunLoopCore/RunLoopMode/common``.
    /// - Throws: as ``/MessagePort/MachPort/schedule(on:in:)``.
    @available(*, noasync, message: "A task has no thread of its own: use `schedule(on:)`.")
    public func schedule(in mode: RunLoopMode = .default) throws(PortError) {
        try schedule(on: .current, in: mode)
    }

    /// Removes the port from a mode of the current thread's run loop. See ``unschedule(from:in:)``.
    ///
    /// - Parameter mode: the mode that it was scheduled in.
    @available(*, noasync, message: "A task has no thread of its own: use `unschedule(from:)`.")
    public func unschedule(in mode: RunLoopMode = .default) {
        unschedule(from: .current, in: mode)
    }
}
