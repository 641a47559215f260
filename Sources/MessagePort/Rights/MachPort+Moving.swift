// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

// A receive right that goes to another process, and one that has come.
extension MachPort {
    /// Begins to move the port to another process, inside a message.
    ///
    /// - Returns: nil when it was not quiet; then it goes on.
    func beginMove(
        to target: PortAddress?, with offer: PortOffer?, besides loop: ThreadRunLoop?, until deadline: MonotonicInstant
    ) throws(PortError) -> (any PortMove)? {
        try localPort.checkMove(to: target)
        return try localPort.beginMove(with: offer, besides: loop, until: deadline).map { MachPortMove(self, $0) }
    }

    /// The port has left: this object is no receive right any more.
    fileprivate func didLeave() {
        let old = state.withLock { state in
            defer { state.binding = .none }
            return (state.replaceReceiver(by: nil, of: nil), state.source)
        }
        localPort.receiverChanges.add(1, ordering: .releasing)
        old.1?.invalidate()
        withExtendedLifetime(old) {}  // released without the lock
    }
}

extension MachMessage.Component {
    /// The receive right that has come inside a descriptor of a message, and is not taken yet.
    ///
    /// - Parameters:
    ///   - socket: the descriptor.
    ///   - room: how large the port may be.
    /// - Returns: the receive right; what is to be done when it is taken; and what it occupies.
    /// - Throws: as `PortTransfer.unpack`; why this process cannot have it.
    static func receiveRight(
        arrivingIn socket: SharedDescriptor, room: ResourceUsage
    ) throws(PortError) -> (MachMessage.Component, any PortArrival, cost: ResourceUsage) {
        let (snapshot, descriptors, cost) = try PortTransfer.unpack(socket, room: room)
        let port = MachPort(queueLimit: snapshot.queueLimit, queuePolicy: snapshot.policy)
        let arrival = try LocalPortArrival(of: port.localPort, as: snapshot, descriptors, in: socket)
        return (.receiveRight(port), arrival, cost)
    }
}

extension MachPort {
    /// From now on no receive right of another process is taken; what was taken is in the queue when this returns.
    package func endArrivals() { localPort.endArrivals() }

    /// Whether other processes of this user may send the port receive rights; initially they may not.
    public var acceptsReceiveRights: Bool { localPort.acceptsReceiveRights }

    /// Sets whether other processes of this user may send the port receive rights. Where they may not, and for a process
    /// of another user, sending one throws ``PortError/Code/notTransferable``, and the right stays. Within a process a
    /// receive right goes to every port.
    ///
    /// A port that comes is as large as ``PeerLimits/queuedBytes`` and ``PeerLimits/queuedDescriptors`` of this port allow
    /// at most, and in a directory that this process has open, such as that of its own names.
    public func setAcceptsReceiveRights(_ accepts: Bool) { localPort.setAcceptsReceiveRights(accepts) }
}

private final class MachPortMove: PortMove {
    private let port: MachPort  // immutable
    private let move: LocalPortMove  // immutable

    init(_ port: MachPort, _ move: LocalPortMove) { (self.port, self.move) = (port, move) }

    var descriptor: SharedDescriptor { move.descriptor }
    var offer: PortOffer { move.offer }

    func commit() {
        move.commit()
        port.didLeave()
    }

    func cancel() { move.cancel() }
}
