// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort
import Synchronization

/// A named port as its clients see it, in this process or another. `CFMessagePortCreateRemote`.
///
/// - Important: Thread safety: any thread; several threads may use one object at once.
public final class RemoteMessagePort: Sendable {
    private struct State {
        var isInvalid = false
        var invalidationHandler: (@Sendable () -> Void)?
    }

    /// The name under which it was looked up.
    public let name: String
    /// The right behind it.
    public let right: SendRight
    private let state = Mutex(State())

    /// Looks a name up. Does not wait for it to appear.
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - nameServer: where to look.
    /// - Throws: as ``PortNameServer/lookUp(_:)``.
    public init(name: String, nameServer: PortNameServer = .shared) throws(PortError) {
        self.name = name
        right = try nameServer.lookUp(name)
    }

    /// Sends a message that expects no reply. `CFMessagePortSendRequest` without a reply mode.
    ///
    /// - Parameters:
    ///   - message: the message. It stays the caller's.
    ///   - sendLimit: how long to wait for room in the port's queue; zero or less never waits.
    /// - Throws: ``PortError/Code/invalidPort`` after ``invalidate()``; otherwise as ``SendRight/send(_:within:)``.
    public func send(_ message: MachMessage, sendLimit: Duration = .seconds(10)) throws(PortError) {
        try checkValid()
        try right.send(message, within: sendLimit)
    }

    /// Sends a message and waits for its reply, running the current thread's run loop in a mode meanwhile.
    ///
    /// - Parameters:
    ///   - message: the request. It stays the caller's.
    ///   - sendLimit: how long to wait for room in the port's queue.
    ///   - replyLimit: how long to wait for the reply, from the moment at which the message was sent.
    ///   - mode: the mode to run; in the private one nothing else runs. ``RunLoopMode/common`` traps.
    /// - Returns: the reply; empty when the port's handler returned nothing.
    /// - Throws: ``PortError/Code/invalidPort`` after ``invalidate()``; otherwise as
    ///   ``SendRight/request(_:sendLimit:replyLimit:mode:)``.
    public func request(
        _ message: MachMessage, sendLimit: Duration = .seconds(10), replyLimit: Duration = .seconds(10),
        mode: RunLoopMode = .portReply
    ) throws(PortError) -> MachMessage {
        try checkValid()
        return try right.request(message, sendLimit: sendLimit, replyLimit: replyLimit, mode: mode)
    }

    /// Whether messages can be sent: not invalidated here, and the port is not gone.
    public var isValid: Bool {
        !state.withLock { $0.isInvalid } && !right.isDead
    }

    /// Sets what is called once when the port is gone, or ``invalidate()`` is called here.
    ///
    /// - Parameters:
    ///   - loop: the loop on which to be told that the port is gone. ``invalidate()`` tells on its own thread.
    ///   - mode: the mode in which to notice it.
    ///   - handler: soon called when the port is invalid already.
    /// - Throws: as ``SendRight/notifyWhenDead(on:in:_:)``.
    public func setInvalidationHandler(
        on loop: ThreadRunLoop, in mode: RunLoopMode = .common, _ handler: @escaping @Sendable () -> Void
    ) throws(PortError) {
        let (isInvalid, old) = state.withLock { state in
            let old = state.invalidationHandler
            state.invalidationHandler = handler
            return (state.isInvalid, old)
        }
        withExtendedLifetime(old) {}  // what a user's handler holds is released without the lock
        if isInvalid { return invalidate() }
        try right.notifyWhenDead(on: loop, in: mode) { [weak self] in self?.invalidate() }
    }

    /// Sets what is called once when the port is gone, on the current thread's run loop.
    ///
    /// See ``setInvalidationHandler(on:in:_:)``.
    ///
    /// - Parameters:
    ///   - mode: the mode in which to notice it.
    ///   - handler: soon called when the port is invalid already.
    /// - Throws: as ``SendRight/notifyWhenDead(on:in:_:)``.
    @available(*, noasync, message: "A task has no thread of its own: use `setInvalidationHandler(on:)`.")
    public func setInvalidationHandler(
        in mode: RunLoopMode = .common, _ handler: @escaping @Sendable () -> Void
    ) throws(PortError) {
        try setInvalidationHandler(on: .current, in: mode, handler)
    }

    /// Ends the use of this object. The port itself, and other objects for it, go on.
    public func invalidate() {
        let handler = state.withLock { state in
            state.isInvalid = true
            return state.invalidationHandler.take()
        }
        handler?()
    }

    private func checkValid() throws(PortError) {
        if state.withLock({ $0.isInvalid }) { throw PortError(.invalidPort) }
    }
}

extension RemoteMessagePort: Hashable {
    /// Remote ports are equal when they are rights to the same port.
    public static func == (left: RemoteMessagePort, right: RemoteMessagePort) -> Bool { left.right == right.right }

    /// Hashes the right.
    public func hash(into hasher: inout Hasher) { hasher.combine(right) }
}
