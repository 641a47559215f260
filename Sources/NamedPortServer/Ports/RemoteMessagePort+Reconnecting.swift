// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort
import Synchronization

extension RemoteMessagePort {
    /// Makes an object for a name, whichever port has it: after the end of one it goes on with the next, as
    /// ``PortNameServer/makeSendRight(reconnectingTo:)`` documents. Looks nothing up.
    ///
    /// It is invalid after ``invalidate()``, and when a port with the name refuses this process.
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - nameServer: where to look the name up.
    /// - Throws: ``/MessagePort/PortError/Code/nameEmpty``, ``/MessagePort/PortError/Code/nameTooLong``,
    ///   ``/MessagePort/PortError/Code/nameHasNUL``.
    public convenience init(reconnectingTo name: String, nameServer: PortNameServer = .shared) throws(PortError) {
        self.init(name: name, right: try nameServer.makeSendRight(reconnectingTo: name))
    }

    /// Asks where what is sent goes now: as `SendRight.state()`, and after ``invalidate()`` nowhere. To be notified of
    /// changes, use ``right``.
    public func state() -> SendRight.State {
        if isInherited { return .invalid(.unknown) }
        return life.withLock { $0.endReason }.map { .invalid($0) } ?? right.state()
    }
}
