// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

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
    final class Rarities: Sendable {
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
        if core.isInherited { return }
        // The old one is released outside the lock: what it holds may use the port in its deinit.
        replaceReceiver(by: Receiver(handler), of: delegate)
        if isValid { return }
        // A port that has ended calls nothing, and retains nothing that may retain the port.
        replaceReceiver(by: nil, of: nil)
    }

    private func replaceReceiver(by new: Receiver?, of delegate: WeakDelegate?) {
        let old = state.withLock { $0.replaceReceiver(by: new, of: delegate) }
        core.receiverChanges.add(1, ordering: .releasing)
        withExtendedLifetime(old) {}
    }

    /// Sets what is called once when the port becomes invalid, on the thread that invalidates it, with no lock held.
    /// `CFMessagePortSetInvalidationCallBack`.
    ///
    /// - Parameter handler: called at once when the port is invalid already; nil for nothing.
    public func setInvalidationHandler(_ handler: (@Sendable () -> Void)?) {
        if core.isInherited { return }
        _ = state.withLock { $0.replaceInvalidationHandler(by: handler) }
        if !isValid { tellInvalidation() }
    }

    /// Whether there is something to call when the port becomes invalid.
    package var hasInvalidationHandler: Bool {
        core.isInherited ? false : state.withLock { $0.rarities?.invalidationHandler != nil }
    }

    func tellInvalidation() {
        let handler = state.withLock { $0.replaceInvalidationHandler(by: nil) }?.invalidationHandler
        handler?()
    }
}

extension MachPort.State {
    /// - Returns: what there was before, to be released without the lock.
    mutating func replaceReceiver(
        by new: MachPort.Receiver?, of delegate: MachPort.WeakDelegate?
    ) -> (MachPort.Receiver?, MachPort.Rarities?) {
        let old = (receiver, rarities)
        receiver = new
        if delegate != nil || rarities != nil { rarities = MachPort.Rarities(rarities?.invalidationHandler, delegate) }
        return old
    }

    /// - Returns: what there was before, to be released without the lock.
    fileprivate mutating func replaceInvalidationHandler(by handler: (@Sendable () -> Void)?) -> MachPort.Rarities? {
        let old = rarities
        if handler != nil || old != nil { rarities = MachPort.Rarities(handler, old?.delegate) }
        return old
    }
}
