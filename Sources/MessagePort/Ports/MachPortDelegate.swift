// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// Handles a port's messages: an object in place of a closure. `NSMachPortDelegate`.
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
    /// What gets a port's messages.
    enum Receiver: Sendable {
        case handler(Handler)
        /// Apart, because a weak reference makes each copy of what it lies in costly.
        indirect case delegate(WeakDelegate)

        init?(_ handler: Handler?) {
            guard let handler else { return nil }
            self = .handler(handler)
        }

        func handle(_ message: MachMessage, at port: MachPort) {
            switch self {
            case .handler(let handler): handler(port, message)
            case .delegate(let reference): reference.delegate?.handleMachMessage(message, at: port)
            }
        }
    }

    /// A delegate that is not kept alive.
    struct WeakDelegate: Sendable {
        weak let delegate: (any MachPortDelegate)?
    }

    /// Sets the object that handles messages from now on, in place of the handler. `-[NSPort setDelegate:]`.
    ///
    /// The port does not keep it alive. When it is gone, messages are dropped, as without a handler: who waits for a reply
    /// is told.
    ///
    /// - Parameter delegate: the object; nil drops messages.
    public func setDelegate(_ delegate: (any MachPortDelegate)?) {
        setReceiver(delegate.map { .delegate(WeakDelegate(delegate: $0)) })
    }

    /// The object that handles messages; nil when there is none, it is gone, a handler was set after it, or the port is
    /// invalid.
    public var delegate: (any MachPortDelegate)? {
        if core.isInherited { return nil }
        guard case .delegate(let reference) = state.withLock({ $0.receiver }) else { return nil }
        return reference.delegate
    }
}
