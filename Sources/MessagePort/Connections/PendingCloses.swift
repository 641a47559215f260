// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Unused descriptors are closed by a separate thread, and the process that made their files controls how long that
// takes. So they stay in their sender's account until they are closed: a peer that sends them faster is not read.

import PortSystem
import Synchronization

/// How many descriptors that came over a connection wait to be closed. At the right's end it retains the connection
/// that is not read until then, so that it needs no weak reference to it.
final class PendingCloseCount: Sendable {
    private let count = Atomic<Int>(0)
    private let limit = DescriptorShares().queued  // immutable
    private let waiting = Mutex<SocketConnection?>(nil)

    /// Whether there are as many as there may be.
    var isAtLimit: Bool { count.load(ordering: .sequentiallyConsistent) >= limit }

    func change(by number: Int) { count.add(number, ordering: .sequentiallyConsistent) }

    var waitingConnection: SocketConnection? { waiting.withLock { $0 } }

    /// Sets the connection that waits, or none, and its mark.
    ///
    /// - Returns: whether the mark was set before.
    @discardableResult
    func setWaiting(_ connection: SocketConnection?, _ mark: borrowing Atomic<Bool>) -> Bool {
        let (old, wasMarked) = waiting.withLock { waiting in
            defer { waiting = connection }
            return (waiting, mark.exchange(connection != nil, ordering: .sequentiallyConsistent))
        }
        withExtendedLifetime(old) {}  // released without the lock
        return wasMarked
    }
}

/// Observes the closing of a packet's descriptors, and of ends of pipes that stay with its rights.
final class PendingCloses: CloseObserver {
    private let count: PendingCloseCount  // immutable
    private let owner: PeerID  // immutable
    private let quotas: PeerQuotas?  // immutable

    /// For a connection: its count, its peer's process, and the accounts of its port; nil at the right's end.
    init(_ count: PendingCloseCount, of owner: PeerID, _ quotas: PeerQuotas?) {
        (self.count, self.owner, self.quotas) = (count, owner, quotas)
    }

    func willClose() {
        count.change(by: 1)
        quotas?.withLock { $0.charge(ResourceUsage(descriptors: 1), by: owner) }
    }

    func willRetain() { quotas?.withLock { $0.addPipeEnd(of: owner) } }

    func didCloseRetained() { quotas?.removePipeEnd(of: owner) }

    func didClose() {
        count.change(by: -1)
        guard let quotas else { return count.waitingConnection?.readAgainAfterClosing() ?? () }
        quotas.refund(ResourceUsage(descriptors: 1), by: owner)
    }
}

extension SocketConnection {
    /// Whether nothing more is read at the right's end, because too many descriptors wait to be closed: then the
    /// connection is paused.
    func throttleUntilClosed() -> Bool {
        guard receiver.isAtCloseLimit, let count = receiver.closingCount.object else { return false }
        count.setWaiting(self, receiver.isThrottled)
        // They may have been closed since. The thread that closed the last may have seen no mark to clear. And a closed
        // connection waits for nothing.
        guard count.isAtLimit, !isClosed else {
            count.setWaiting(nil, receiver.isThrottled)
            updateInterest()  // a thread that saw the mark may have stopped watching the connection
            return false
        }
        updateInterest()
        return true
    }

    fileprivate func readAgainAfterClosing() {
        guard !isPortsEnd, receiver.isThrottled.load(ordering: .sequentiallyConsistent),
            let count = receiver.closingCount.object, !count.isAtLimit
        else { return }
        count.setWaiting(nil, receiver.isThrottled)
        updateInterest()
    }
}
