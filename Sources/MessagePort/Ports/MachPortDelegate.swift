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

/// A delegate that is not kept alive.
struct WeakDelegate: @unchecked Sendable {
    // @unchecked: a weak reference may be read by many threads at once; it is set by `init` alone.
    weak var delegate: (any MachPortDelegate)?
}

extension MachPort {
    /// Sets the object that handles messages from now on, in place of the handler. `-[NSPort setDelegate:]`.
    ///
    /// The port does not keep it alive. When it is gone, messages are dropped, as without a handler: who waits for a reply
    /// is told.
    ///
    /// - Parameter delegate: the object; nil drops messages.
    public func setDelegate(_ delegate: (any MachPortDelegate)?) {
        guard let delegate else { return setHandler(nil) }
        if core.isInherited { return }
        let reference = WeakDelegate(delegate: delegate)
        set({ port, message in reference.delegate?.handleMachMessage(message, at: port) }, reference)
    }

    /// The object that handles messages; nil when there is none, it is gone, or a handler was set after it.
    public var delegate: (any MachPortDelegate)? {
        core.isInherited ? nil : state.withLock { $0.delegate }?.delegate
    }
}
