// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
public import RunLoopCore
import Synchronization

extension MachPort {
    /// A handler. A bare function that is returned from under the lock would allocate each time; one in a struct would
    /// be retained twice.
    enum Receiver: Sendable {
        case handler(Handler)

        init?(_ handler: Handler?) {
            guard let handler else { return nil }
            self = .handler(handler)
        }

        var handler: Handler {
            switch self {
            case .handler(let handler): handler
            }
        }
    }

    /// What only some ports have: an object, so that the others only have room for a pointer.
    final class ColdState: Sendable {
        let invalidationHandler: (@Sendable () -> Void)?  // immutable
        /// The delegate behind the port's handler.
        let delegate: WeakDelegate?  // immutable

        init?(_ invalidationHandler: (@Sendable () -> Void)?, _ delegate: WeakDelegate?) {
            if invalidationHandler == nil, delegate == nil { return nil }
            self.invalidationHandler = invalidationHandler
            self.delegate = delegate
        }
    }

    /// Sets what is called for each message from now on; it applies to the next message that is dequeued.
    ///
    /// - Parameter handler: the handler; nil drops messages.
    public func setHandler(_ handler: Handler?) {
        setHandler(handler, of: nil)
    }

    /// The same; `delegate` is what the handler calls.
    func setHandler(_ handler: Handler?, of delegate: WeakDelegate?) {
        if localPort.isInherited { return }
        // The old one is released outside the lock: what it holds may use the port in its deinit.
        replaceReceiver(by: Receiver(handler), of: delegate)
        if isValid { return }
        // A port that has ended calls nothing, and retains nothing that may retain the port.
        replaceReceiver(by: nil, of: nil)
    }

    private func replaceReceiver(by new: Receiver?, of delegate: WeakDelegate?) {
        let old = state.withLock { $0.replaceReceiver(by: new, of: delegate) }
        localPort.receiverChanges.add(1, ordering: .releasing)
        withExtendedLifetime(old) {}
    }

    /// Sets what is called once when the port becomes invalid, on the thread that invalidates it, with no lock held.
    /// `CFMessagePortSetInvalidationCallBack`.
    ///
    /// - Parameter handler: called at once when the port is invalid already; nil for nothing.
    public func setInvalidationHandler(_ handler: (@Sendable () -> Void)?) {
        if localPort.isInherited { return }
        _ = state.withLock { $0.replaceInvalidationHandler(by: handler) }
        if !isValid { callInvalidationHandler() }
    }

    /// Sets what is called once on a run loop when the port becomes invalid.
    ///
    /// It replaces what ``setInvalidationHandler(_:)`` has set, and is replaced by it. Never called when the loop's
    /// thread ends first.
    ///
    /// - Parameters:
    ///   - loop: the loop on which to call the handler.
    ///   - mode: the mode in which to call it.
    ///   - handler: called once on the loop's thread; soon, when the port is invalid already.
    public func setInvalidationHandler(
        on loop: ThreadRunLoop, in mode: RunLoopMode = .common, _ handler: @escaping @Sendable () -> Void
    ) {
        if localPort.isInherited { return }
        let notice = LoopNotification<Void>(on: loop, in: mode) { _ in handler() }
        setInvalidationHandler { notice.notify() }
    }

    package var hasInvalidationHandler: Bool {
        localPort.isInherited ? false : state.withLock { $0.coldState?.invalidationHandler != nil }
    }

    func callInvalidationHandler() {
        let handler = state.withLock { $0.replaceInvalidationHandler(by: nil) }?.invalidationHandler
        handler?()
    }
}

extension MachPort.State {
    /// - Returns: what there was before, to be released without the lock.
    mutating func replaceReceiver(
        by new: MachPort.Receiver?, of delegate: MachPort.WeakDelegate?
    ) -> (MachPort.Receiver?, MachPort.ColdState?) {
        let old = (receiver, coldState)
        receiver = new
        if delegate != nil || coldState != nil {
            coldState = MachPort.ColdState(coldState?.invalidationHandler, delegate)
        }
        return old
    }

    /// - Returns: what there was before, to be released without the lock.
    fileprivate mutating func replaceInvalidationHandler(by handler: (@Sendable () -> Void)?) -> MachPort.ColdState? {
        let old = coldState
        if handler != nil || old != nil { coldState = MachPort.ColdState(handler, old?.delegate) }
        return old
    }
}

// MARK: - Delegate

/// Handles a port's messages: an object instead of a closure. `NSMachPortDelegate`.
public protocol MachPortDelegate: AnyObject, Sendable {
    /// Is called for each message, on the thread of the loop that the port is scheduled on, with no lock held.
    /// `-[NSMachPortDelegate handleMachMessage:]`, `-[NSPortDelegate handlePortMessage:]`.
    ///
    /// It cannot throw: reply with ``MachMessage/replyError(_:_:)`` instead.
    ///
    /// - Parameters:
    ///   - message: the message.
    ///   - port: the port at which it came.
    func handleMachMessage(_ message: MachMessage, at port: MachPort)
}

extension MachPort {
    /// A weak reference to a delegate.
    final class WeakDelegate: Sendable {
        weak let object: (any MachPortDelegate)?

        init(_ object: any MachPortDelegate) {
            self.object = object
        }
    }

    /// Sets the object that handles messages from now on, instead of the handler. `-[NSPort setDelegate:]`.
    ///
    /// The port does not retain it. When it is gone, messages are dropped, as without a handler: a requester that waits
    /// for a reply is notified.
    ///
    /// - Parameter delegate: the object; nil drops messages.
    public func setDelegate(_ delegate: (any MachPortDelegate)?) {
        guard let delegate else { return setHandler(nil) }
        let reference = WeakDelegate(delegate)
        setHandler({ port, message in reference.object?.handleMachMessage(message, at: port) }, of: reference)
    }

    /// The object that handles messages; nil when there is none, it is gone, a handler was set after it, or the port is
    /// invalid.
    public var delegate: (any MachPortDelegate)? {
        if localPort.isInherited { return nil }
        return state.withLock { $0.coldState?.delegate }?.object
    }
}

// MARK: - Doorbell

extension MachPort {
    /// A descriptor that is readable while messages wait: see ``PortDoorbell``. A port has one, which stays until the
    /// port is gone.
    ///
    /// - Returns: the doorbell; the same each time.
    /// - Throws: ``PortError/Code/invalidPort``; ``PortError/Code/forkedProcess``; ``PortError/Code/descriptorLimit``
    ///   and ``PortError/Code/systemCallFailed`` when the kernel gives no descriptor.
    public func doorbell() throws(PortError) -> PortDoorbell {
        try localPort.doorbell()
    }

    /// As ``tryReceive()``, for a loop that waits for edges of the port's doorbell, as CoreFoundation's, and handles one
    /// message for each: it gets another edge if others wait.
    package func tryReceiveAfterEdge() throws(PortError) -> MachMessage? {
        defer { localPort.signalDoorbellIfMessagesWait() }
        return try tryReceive()
    }
}
