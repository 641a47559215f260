// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort
import Synchronization

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

    private struct Reference: Sendable {
        weak let port: RemoteMessagePort?
    }

    // A closure under this lock may end up with the last reference to an object that it found here. The object's end
    // acquires this lock, so it must come after the lock is free: a closure under the lock returns each object that it
    // has read.
    private static let known = Mutex<[SharedKey: Reference]>([:])

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
    public static func shared(name: String, nameServer: PortNameServer = .shared) throws(PortError) -> RemoteMessagePort
    {
        let right = try nameServer.lookUp(name)
        let key = SharedKey(right, try PortName(name))
        if let port = known.withLock({ $0[key]?.port }), !port.isInvalid { return port }
        let made = RemoteMessagePort(name: name, right: right)
        made.state.withLock { $0.sharedKey = key }
        let (winner, other) = known.withLock { known -> (RemoteMessagePort, RemoteMessagePort?) in
            let other = known[key]?.port
            if let other, !other.isInvalid { return (other, other) }
            known[key] = Reference(port: made)
            return (made, other)
        }
        withExtendedLifetime(other) {}
        return winner
    }

    /// Forgets an object that is gone, unless another has replaced it.
    static func forget(_ key: SharedKey) {
        let other = known.withLock { known -> RemoteMessagePort? in
            let other = known[key]?.port
            if other == nil { known[key] = nil }
            return other
        }
        withExtendedLifetime(other) {}
    }
}
