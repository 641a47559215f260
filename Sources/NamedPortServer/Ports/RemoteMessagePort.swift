// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort
import PortSystem
import Synchronization

/// A named port as its clients see it, in this process or another. `CFMessagePortCreateRemote`.
///
/// ``shared(name:nameServer:)`` gives the process's one object for a port and its name; ``init(name:nameServer:)``
/// makes another, with an end of its own. When the last reference goes, the object is invalidated.
///
/// `Docs/CFMessagePort.md` names the counterpart of each function of CFMessagePort.
///
/// - Important: Thread safety: any thread; several threads may use one object at once.
public final class RemoteMessagePort: Sendable {
    struct State: Sendable {
        var isInvalid = false
        /// The watch of the end, and the right's notice, to be cancelled when there is no watch any more.
        var watch: EndWatch?
        var request: NoticeRequest?
        /// The object's key among the shared ones.
        var sharedKey: SharedKey?
    }

    /// The name under which it was looked up. `CFMessagePortGetName`.
    public let name: String
    /// The right behind it.
    public let right: SendRight
    let state = Mutex(State())
    /// The requests that wait for their replies.
    let requests = RequestGroup()
    private let forkCount = sysForkCount()  // immutable

    /// Looks a name up. Does not wait for it to appear.
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - nameServer: where to look the name up.
    /// - Throws: as ``PortNameServer/lookUp(_:)``.
    public convenience init(name: String, nameServer: PortNameServer = .shared) throws(PortError) {
        self.init(name: name, right: try nameServer.lookUp(name))
    }

    /// Makes an object for a right.
    package init(name: String, right: SendRight) {
        self.name = name
        self.right = right
    }

    deinit {
        if isInherited { return }
        if let key = state.withLock({ $0.sharedKey }) { Self.forget(key) }
        invalidate()
    }

    /// Whether messages can be sent: not invalidated here, and the port is not gone. `CFMessagePortIsValid`.
    public var isValid: Bool {
        !right.isDead && !isInvalid
    }

    /// Whether this is a forked child's copy of its parent's object: a thread that the child does not have may hold its
    /// lock.
    var isInherited: Bool { sysForkCount() != forkCount }

    /// Whether it was invalidated here, or its end was noticed.
    var isInvalid: Bool { isInherited || state.withLock { $0.isInvalid } }
}

extension RemoteMessagePort: Hashable {
    /// Remote ports are equal when they are rights to the same port.
    public static func == (left: RemoteMessagePort, right: RemoteMessagePort) -> Bool { left.right == right.right }

    /// Hashes the right.
    public func hash(into hasher: inout Hasher) { hasher.combine(right) }
}
