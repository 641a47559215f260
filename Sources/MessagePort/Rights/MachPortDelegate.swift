// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

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
        if core.isInherited { return nil }
        return state.withLock { $0.rarities?.delegate }?.object
    }
}
