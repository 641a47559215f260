// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore

// A port that has left this process. Its object leads this process's rights to the next owner: over a connection that
// counts there as long as there are rights here. What comes later, such as a reply that a send-once right brings, finds
// the port by its address.
extension LocalPort {
    /// Whether another process has the port.
    var hasLeft: Bool { !isInherited && state.withLock { $0.hasLeft } }

    /// The right to the port since it has left this process; nil while it has not, and where it can no longer be found.
    var successor: SendRight? {
        if isInherited { return nil }
        let (known, address) = state.withLock { state -> (SendRight?, PortAddress?) in
            state.hasLeft ? (state.coldState.successor, state.coldState.address) : (nil, nil)
        }
        // The path of a supervisor may lead to another port.
        guard known == nil, let address, address.isOfPort else { return known }
        let made = SendRight(RemotePort(address))
        return state.withLock { state in
            if let known = state.coldState.successor { return known }
            if state.senders.hasRights { state.coldState.successor = made }
            return made
        }
    }

    /// The port has left, and a right to it has come, with an end that counts it there.
    func retain(_ end: ReceivedEnd) {
        if hasLeft { _ = successor?.destination.makePresence(with: end) }
    }

    package func pollDeath() -> Bool {
        if isInherited { return true }
        return state.withLock { state in
            if !state.mailbox.isDead { return false }
            guard state.hasLeft, let address = state.coldState.address else { return true }
            // With the lock its last reference is not released here, where the lock of the addresses may be held.
            return state.coldState.successor?.destination.pollDeath() ?? !address.isOfPort
        }
    }

    package func isFoundDead() -> Bool { isDead && successor?.destination.isFoundDead() != false }

    package func knownEndReason() -> PortEndReason {
        isInherited ? .unknown : successor?.destination.knownEndReason() ?? .invalidated
    }

    package func owner() throws(PortError) -> PeerIdentity {
        try checkProcess()
        return try successor?.destination.owner() ?? .current
    }

    /// What travels in place of a right to this port since it has left.
    package func rightToSend() -> SendRight? { hasLeft ? successor : nil }

    /// Sends a message to the successor, now or when there is room.
    ///
    /// - Returns: false when there is none, or it has ended.
    @discardableResult
    func passOn(_ message: MachMessage) -> Bool {
        guard let successor else { return false }
        do throws(PortError) {
            guard let port = successor.destination as? RemotePort else { return false }
            try port.reached().sendLater(message)
            return true
        } catch {
            // Too many wait to connect, there or at a port to which the message has a right.
            if error.code == .sendTimedOut, let loop = IOThread.startedLoop {
                loop.add(RunLoopTimer(after: Tuning.timeUntilRetry) { [self] _ in passOn(message) })
                return true
            }
            message.replyTarget?.bounce(PortError(.peerDied))
            return false
        }
    }
}

extension LocalPort.State {
    /// Whether another process has the port.
    var hasLeft: Bool { mutating get { mailbox.isDead && hasColdState && coldState.hasLeft } }

    /// Without a right in this process the next owner does not count this process.
    ///
    /// - Returns: what is released without the lock.
    mutating func removeUnusedSuccessor() -> SendRight? {
        if senders.hasRights || !hasLeft { return nil }
        return coldState.successor.take()
    }
}
