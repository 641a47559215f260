// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort

/// A port with a name that answers requests. `CFMessagePortCreateLocal`, `NSMessagePort`.
///
/// Schedule it on a run loop; the loop then keeps it alive, as `CFRunLoopAddSource` does, so this object may be let go.
/// Requests that come before it is scheduled wait in its queue.
///
/// - Important: Thread safety: any thread. The handler runs on the thread of the run loop.
public final class LocalMessagePort: Sendable {
    /// Called for each message. What it returns is the reply, nil being an empty one, unless the message expects none, or the
    /// handler has taken the reply right out of it to reply later. `CFMessagePortCallBack`.
    public typealias Handler = @Sendable (MachPort, MachMessage) -> [UInt8]?

    /// The name under which it was made.
    public let name: String
    /// The port behind it.
    public let port: MachPort

    /// Makes a port and gives it a name.
    ///
    /// - Parameters:
    ///   - name: 1 to 128 bytes of UTF-8, any but NUL; no other live port may have it.
    ///   - nameServer: where the name is registered.
    ///   - queueLimit: how many messages may wait in the queue.
    ///   - handler: called for each message.
    /// - Throws: as ``PortNameServer/register(_:name:)``.
    public init(
        name: String, nameServer: PortNameServer = .shared, queueLimit: Int = MachPort.defaultQueueLimit,
        handler: @escaping Handler
    ) throws(PortError) {
        self.name = name
        port = MachPort(queueLimit: queueLimit) { port, message in
            let reply = handler(port, message)
            // The requester may have gone meanwhile: then nobody wants the reply.
            if message.expectsReply { try? message.reply(MachMessage(id: message.id, bytes: reply ?? [])) }
        }
        try nameServer.register(port, name: name)
    }

    /// Makes a run loop call the handler for this port's messages. `CFMessagePortCreateRunLoopSource`.
    ///
    /// - Parameters:
    ///   - loop: the loop.
    ///   - mode: a mode of it, or ``RunLoopMode/common``.
    /// - Throws: as ``MachPort/schedule(on:in:)``.
    public func schedule(on loop: ThreadRunLoop, in mode: RunLoopMode = .default) throws(PortError) {
        try port.schedule(on: loop, in: mode)
    }

    /// Makes the current thread's run loop call the handler for this port's messages. See ``schedule(on:in:)``.
    ///
    /// - Parameter mode: a mode of the loop, or ``RunLoopMode/common``.
    /// - Throws: as ``MachPort/schedule(on:in:)``.
    @available(*, noasync, message: "A task has no thread of its own: use `schedule(on:)`.")
    public func schedule(in mode: RunLoopMode = .default) throws(PortError) {
        try schedule(on: .current, in: mode)
    }

    /// Whether the port can receive.
    public var isValid: Bool { port.isValid }

    /// Sets what is called once when the port becomes invalid. See ``MachPort/setInvalidationHandler(_:)``.
    ///
    /// - Parameter handler: called at once when the port is invalid already; nil for nothing.
    public func setInvalidationHandler(_ handler: (@Sendable () -> Void)?) {
        port.setInvalidationHandler(handler)
    }

    /// Ends the port. Its name is free when this returns. A reply that its handler is about to give is still sent.
    public func invalidate() {
        port.invalidate()
    }
}
