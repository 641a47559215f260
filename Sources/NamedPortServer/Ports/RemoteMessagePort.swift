// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort
import PortSystem
import Synchronization

/// A named port as its clients see it, in this process or another. `CFMessagePortCreateRemote`.
///
/// `shared(name:nameServer:)` gives the process's one object for a port and its name; `init(name:nameServer:)`
/// makes another, with an end of its own. When the last reference goes, the object is invalidated.
/// `init(reconnectingTo:nameServer:)` makes one that goes on with the name's next port when its port ends.
///
/// `Docs/CFMessagePort.md` names the counterpart of each function of CFMessagePort.
///
/// - Important: Thread safety: any thread; several threads may use one object at once.
public final class RemoteMessagePort: Sendable {
    struct State: Sendable {
        /// Why the object is invalid; nil while it is not known to be.
        var endReason: PortEndReason?
        /// The notice for the handler, and that of the right, to be cancelled when there is no handler any more.
        var notice: DeathNotice?
        var request: NoticeRequest?
        /// The object's key among the shared ones.
        var sharedKey: SharedKey?
    }

    /// The name under which it was looked up. `CFMessagePortGetName`.
    public let name: String
    /// The right behind it.
    public let right: SendRight
    let life = Mutex(State())
    /// The requests that wait for their replies.
    let requests = RequestGroup()
    private let forkGuard = ForkGuard()  // immutable

    /// Looks a name up. Does not wait for it to appear.
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - nameServer: where to look the name up.
    /// - Throws: as ``PortNameServer/lookUp(_:)``.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    public convenience init(name: String, nameServer: PortNameServer = .shared) throws(PortError) {
        self.init(name: name, right: try nameServer.lookUp(name))
    }

    /// Looks a name up, as the blocking form does, and suspends the task meanwhile. Does not wait for the name to
    /// appear.
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - nameServer: where to look the name up.
    /// - Throws: what the blocking form throws; ``/MessagePort/PortError/Code/cancelled`` when the task is cancelled.
    nonisolated(nonsending) public convenience init(
        name: String, nameServer: PortNameServer = .shared
    ) async throws(PortError) {
        self.init(name: name, right: try await nameServer.lookUp(name))
    }

    /// Makes an object for a right.
    package init(name: String, right: SendRight) {
        self.name = name
        self.right = right
    }

    deinit {
        if isInherited { return }
        if let key = life.withLock({ $0.sharedKey }) { Self.forget(key) }
        endUse()
    }

    /// Whether messages can be sent: not invalidated here, and the port is not gone. `CFMessagePortIsValid`. One that
    /// reconnects is valid while it is interrupted.
    public var isValid: Bool {
        !right.isDead && !isInvalid
    }

    /// Whether this is a forked child's copy of its parent's object: a thread that the child does not have may hold its
    /// lock.
    var isInherited: Bool { forkGuard.isInherited }

    /// Whether it was invalidated here, or its end was noticed.
    var isInvalid: Bool { isInherited || life.withLock { $0.endReason != nil } }
}

extension RemoteMessagePort: Hashable {
    /// Remote ports are equal when they are rights to the same port, whether or not one of them was invalidated: `===`
    /// compares the objects, as CFMessagePort does.
    public static func == (left: RemoteMessagePort, right: RemoteMessagePort) -> Bool { left.right == right.right }

    /// Hashes the right.
    public func hash(into hasher: inout Hasher) { hasher.combine(right) }
}

// MARK: - Sending

extension RemoteMessagePort {
    /// Sends a message that expects no reply. `CFMessagePortSendRequest` without a reply mode.
    ///
    /// - Parameters:
    ///   - message: the message. It stays the caller's.
    ///   - sendLimit: how long to wait for room in the port's queue; zero or less never waits.
    /// - Throws: ``/MessagePort/PortError/Code/invalidPort`` after ``invalidate()``; otherwise as
    ///   `SendRight.send(_:within:)`.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    public func send(_ message: MachMessage, sendLimit: Duration = .seconds(10)) throws(PortError) {
        do throws(PortError) {
            try checkValid()
            try right.send(message, within: sendLimit)
        } catch {
            throw error.at(name: name)
        }
    }

    /// Sends a message that expects no reply, and suspends the task while the port's queue is full.
    ///
    /// - Parameters:
    ///   - message: the message. It stays the caller's.
    ///   - sendLimit: how long to wait for room in the port's queue; zero or less never waits.
    /// - Throws: what the blocking form throws; ``/MessagePort/PortError/Code/cancelled``: nothing was delivered then.
    nonisolated(nonsending) public func send(
        _ message: MachMessage, sendLimit: Duration = .seconds(10)
    ) async throws(PortError) {
        do throws(PortError) {
            try checkValid()
            try await right.send(message, within: sendLimit)
        } catch {
            throw error.at(name: name)
        }
    }

    /// Sends a message and waits for its reply, running the current thread's run loop in a mode meanwhile.
    /// `CFMessagePortSendRequest` with a reply mode.
    ///
    /// - Parameters:
    ///   - message: the request. It stays the caller's.
    ///   - sendLimit: how long to wait for room in the port's queue.
    ///   - replyLimit: how long to wait for the reply, from the moment at which the message was sent.
    ///   - isIdempotent: whether asking twice does no harm: then an object that reconnects asks the next port after
    ///     the end of one that has not replied, within `replyLimit`.
    ///   - mode: the mode to run; in the private one nothing else runs. ``/RunLoopCore/RunLoopMode/common`` traps.
    /// - Returns: the reply; empty when the port's handler returned nothing.
    /// - Throws: ``/MessagePort/PortError/Code/invalidPort`` after ``invalidate()``,
    ///   ``/MessagePort/PortError/Code/peerDied`` when that is called during the wait; otherwise as
    ///   ``/MessagePort/SendRight/request(_:sendLimit:replyLimit:isIdempotent:mode:)``.
    @available(*, noasync, message: "It blocks the thread. Leave `mode` out, and write `await`, to suspend the task.")
    @discardableResult
    public func request(
        _ message: MachMessage, sendLimit: Duration = .seconds(10), replyLimit: Duration = .seconds(10),
        isIdempotent: Bool = false, mode: RunLoopMode = .portReply
    ) throws(PortError) -> MachMessage {
        do throws(PortError) {
            try checkValid()
            return try right.request(
                message, sendLimit: sendLimit, replyLimit: replyLimit, isIdempotent: isIdempotent, mode: mode,
                in: requests)
        } catch {
            throw error.at(name: name)
        }
    }

    /// Sends a message and suspends the task until its reply comes. No thread waits, and no run loop runs.
    ///
    /// - Parameters:
    ///   - message: the request. It stays the caller's.
    ///   - sendLimit: how long to wait for room in the port's queue.
    ///   - replyLimit: how long to wait for the reply, from the moment at which the message was sent.
    ///   - isIdempotent: whether asking twice does no harm, as in the blocking form.
    /// - Returns: the reply; empty when the port's handler returned nothing.
    /// - Throws: ``/MessagePort/PortError/Code/invalidPort`` after ``invalidate()``,
    ///   ``/MessagePort/PortError/Code/peerDied`` when that is called during the wait; otherwise as
    ///   ``/MessagePort/SendRight/request(_:sendLimit:replyLimit:isIdempotent:)``.
    @discardableResult
    nonisolated(nonsending) public func request(
        _ message: MachMessage, sendLimit: Duration = .seconds(10), replyLimit: Duration = .seconds(10),
        isIdempotent: Bool = false
    ) async throws(PortError) -> MachMessage {
        do throws(PortError) {
            try checkValid()
            return try await right.request(
                message, sendLimit: sendLimit, replyLimit: replyLimit, isIdempotent: isIdempotent, in: requests)
        } catch {
            throw error.at(name: name)
        }
    }

    func checkValid() throws(PortError) {
        try forkGuard.check()
        if isInvalid { throw PortError(.invalidPort) }
    }
}

// MARK: - Ending

extension RemoteMessagePort {
    /// Sets the handler that is called once when the port is gone, or this object is invalidated.
    /// `CFMessagePortSetInvalidationCallBack`.
    ///
    /// It is called on the loop's thread and nowhere else: at once when ``invalidate()`` is called there, otherwise as
    /// a block. It is never called when the loop's thread ends first. It replaces the handler set before, which is then
    /// never called.
    ///
    /// - Parameters:
    ///   - loop: the loop on which to call the handler.
    ///   - mode: the mode in which to notice that the port is gone.
    ///   - handler: called with the reason; at once, or soon, when the object is invalid or the port is gone already;
    ///     nil for nothing.
    /// - Throws: as ``/MessagePort/SendRight/notifyWhenDead(on:in:_:)``. Then no handler is called at the port's end.
    public func setInvalidationHandler(
        on loop: ThreadRunLoop, in mode: RunLoopMode = .common, _ handler: (@Sendable (PortEndReason) -> Void)?
    ) throws(PortError) {
        try forkGuard.check()
        let notice = handler.map { DeathNotice(loop: loop, mode: mode, handler: $0) }
        let (reason, old) = life.withLock { state in
            let old = state.removeNotice()
            if state.endReason == nil { state.notice = notice }
            return (state.endReason, old)
        }
        old.request?.cancel()
        guard let notice else { return }
        if let reason { return Self.notify(notice, reason) }
        do throws(PortError) {
            let request = try right.notifyWhenDead(on: loop, in: mode) { [weak self] in self?.portDidEnd(notice, $0) }
            let isWanted = life.withLock { state in
                let isWanted = state.notice === notice
                if isWanted { state.request = request }
                return isWanted
            }
            if !isWanted { request.cancel() }  // it was replaced, or notified, meanwhile
        } catch {
            if remove(notice) { throw error }
        }
    }

    /// Sets the handler that is called once when the port is gone, or this object is invalidated, on the current
    /// thread's run loop.
    ///
    /// See ``setInvalidationHandler(on:in:_:)``.
    ///
    /// - Parameters:
    ///   - mode: the mode in which to notice that the port is gone.
    ///   - handler: called with the reason; at once, or soon, when the object is invalid or the port is gone already;
    ///     nil for nothing.
    /// - Throws: as ``/MessagePort/SendRight/notifyWhenDead(on:in:_:)``.
    @available(*, noasync, message: "A task has no thread of its own: use `setInvalidationHandler(on:)`.")
    public func setInvalidationHandler(
        in mode: RunLoopMode = .common, _ handler: (@Sendable (PortEndReason) -> Void)?
    ) throws(PortError) {
        try setInvalidationHandler(on: .current, in: mode, handler)
    }

    /// Whether there is a handler to call at the end. `CFMessagePortGetInvalidationCallBack`.
    public var hasInvalidationHandler: Bool { !isInherited && life.withLock { $0.notice != nil } }

    /// Ends the use of this object. The port itself, and other objects for it, go on. `CFMessagePortInvalidate`.
    ///
    /// Requests that wait for their replies, on any thread or task, end at once with
    /// ``/MessagePort/PortError/Code/peerDied``, and the receiver is notified
    /// (``/MessagePort/MachMessage/isCancelled``). A request that waits for room goes on waiting, and ends with the
    /// same error once its message was sent. In a forked child nothing happens: the object belongs to its parent.
    public func invalidate() {
        if isInherited { return }
        endUse()
        (right.destination as? ReconnectingPort)?.end(.invalidatedHere)
    }

    /// Ends this object alone: a right that reconnects, and that the program still has, goes on.
    private func endUse() {
        let old = life.withLock { state in
            if state.endReason == nil { state.endReason = .invalidatedHere }
            return state.removeNotice()
        }
        old.request?.cancel()
        requests.close(PortError(.peerDied))
        if let notice = old.notice { Self.notify(notice, .invalidatedHere) }
    }

    /// Called on the notice's loop when the port is gone.
    private func portDidEnd(_ notice: DeathNotice, _ reason: PortEndReason) {
        if remove(notice, reason) { Self.notify(notice, reason) }
    }

    /// Calls the handler on its loop: immediately, if that is the current thread's. The thread that calls this has
    /// removed the handler first, so it is called once.
    private static func notify(_ notice: DeathNotice, _ reason: PortEndReason) {
        if notice.loop.isCurrent { notice.handler(reason) } else { notice.notify(reason) }
    }

    private func remove(_ notice: DeathNotice, _ reason: PortEndReason? = nil) -> Bool {
        life.withLock { state in
            guard state.notice === notice else { return false }
            _ = state.removeNotice()
            if let reason, state.endReason == nil { state.endReason = reason }
            return true
        }
    }
}

extension RemoteMessagePort.State {
    /// Removes the notice of the end, so that it is delivered once.
    mutating func removeNotice() -> (notice: DeathNotice?, request: NoticeRequest?) {
        (notice.take(), request.take())
    }
}

// MARK: - Sharing

extension RemoteMessagePort {
    /// What a shared object stands for. The object retains the port's right, so no other port has its identity
    /// meanwhile.
    struct SharedKey: Hashable, Sendable {
        private let port: ObjectIdentifier
        private let name: PortName

        init(_ right: SendRight, _ name: PortName) {
            port = ObjectIdentifier(right.destination)
            self.name = name
        }
    }

    // A closure under this lock may end up with the last reference to an object that it found here. The object's end
    // acquires this lock, so it must come after the lock is free: a closure under the lock returns each object that it
    // has read.
    private static let known = Mutex<[SharedKey: WeakReference<RemoteMessagePort>]>([:])

    /// The one object of this process for the port that has a name now. Does not wait for it to appear.
    /// `CFMessagePortCreateRemote`.
    ///
    /// After its ``invalidate()`` here, or the end of its port, the next call gives a fresh one, if the name leads to a
    /// port. The process does not retain it: it lives as long as the program's references to it.
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - nameServer: where to look the name up.
    /// - Returns: the object; the same each time.
    /// - Throws: as ``PortNameServer/lookUp(_:)``.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    public static func shared(name: String, nameServer: PortNameServer = .shared) throws(PortError) -> RemoteMessagePort
    {
        try shared(name, try nameServer.lookUp(name))
    }

    /// The one object of this process for the port that has a name now, as the blocking form gives it, and suspends the
    /// task meanwhile.
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - nameServer: where to look the name up.
    /// - Returns: the object; the same each time.
    /// - Throws: what the blocking form throws; ``/MessagePort/PortError/Code/cancelled`` when the task is cancelled.
    nonisolated(nonsending) public static func shared(
        name: String, nameServer: PortNameServer = .shared
    ) async throws(PortError) -> RemoteMessagePort {
        try shared(name, try await nameServer.lookUp(name))
    }

    private static func shared(_ name: String, _ right: SendRight) throws(PortError) -> RemoteMessagePort {
        let key = SharedKey(right, try PortName(name))
        if let port = known.withLock({ $0[key]?.object }), !port.isInvalid { return port }
        let made = RemoteMessagePort(name: name, right: right)
        made.life.withLock { $0.sharedKey = key }
        let (winner, other) = known.withLock { known -> (RemoteMessagePort, RemoteMessagePort?) in
            let other = known[key]?.object
            if let other, !other.isInvalid { return (other, other) }
            known[key] = WeakReference(made)
            return (made, other)
        }
        withExtendedLifetime(other) {}
        return winner
    }

    /// Forgets an object that is gone, unless another has replaced it.
    static func forget(_ key: SharedKey) {
        let other = known.withLock { known -> RemoteMessagePort? in
            let other = known[key]?.object
            if other == nil { known[key] = nil }
            return other
        }
        withExtendedLifetime(other) {}
    }
}
