// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// A descriptor that is readable while messages wait at a port: for loops other than this library's, such as
/// `epoll(7)`, `poll(2)`, a `DispatchSource`, or CoreFoundation's run loop.
///
/// ``MachPort/doorbell()`` makes it. Wait for its ``descriptor`` to be readable, then receive with
/// ``MachPort/tryReceive()``; never read the descriptor itself.
///
/// What holds under every interleaving:
/// - It is readable while a message waits, in the queue or in the socket of a client that was accepted. A thread of
///   the library may be accepting the client of a message that has just come; until then the message is not there.
/// - For a port that is used within its process, it is readable exactly then.
/// - For a port that other processes reach, it is also readable for what has arrived and is no message: a new
///   connection, the end of one, a piece of a large message, a change of a requester's state. `tryReceive` then handles
///   that and returns nil; once nothing is left it is no longer readable. The kernel cannot tell one from the other
///   before it is read.
/// - Once the port is invalid it is readable permanently, and `tryReceive` throws.
///
/// - Important: An edge-triggered loop (`EPOLLET`, CoreFoundation) receives until `tryReceive` returns nil. When that
///   has left something unread, the descriptor is signalled again.
///
/// - Important: Thread safety: any thread.
public final class PortDoorbell: Sendable {
    private let members: EpollSet  // immutable
    private let doorbell: EventDescriptor  // immutable
    private let isSignalled = Atomic<Bool>(false)  // changed under the port's lock

    private static let doorbellKey: UInt64 = 1
    private static let socketsKey: UInt64 = 2

    init() throws(PortError) {
        doorbell = try PortError.converting(EventDescriptor())
        members = try PortError.converting(EpollSet())
        try PortError.converting(members.add(doorbell.raw, .readable, key: Self.doorbellKey))
    }

    /// The descriptor: open as long as this object or the port exists; owned by the library.
    public var descriptor: Int32 { members.raw }

    /// Follows a change of the port's queue. The caller holds the port's lock, so signals keep the changes' order.
    func match(_ mailbox: borrowing MailboxState) {
        let shouldSignal = mailbox.isDead || !mailbox.queue.isEmpty && !mailbox.isFrozen
        if shouldSignal == isSignalled.load(ordering: .relaxed) { return }
        isSignalled.store(shouldSignal, ordering: .relaxed)
        if shouldSignal { doorbell.signal() } else { doorbell.clear() }
    }

    /// Something is left in the sockets: gives edge-triggered loops an edge. Where nothing is left after all, none sees
    /// it. The caller holds the port's lock.
    func signalAgain() {
        if isSignalled.load(ordering: .relaxed) { return }
        doorbell.signal()
        doorbell.clear()
    }

    /// Gives edge-triggered loops another edge if messages wait in the queue, or something is left in the sockets. The
    /// caller holds the port's lock.
    fileprivate func signalAgainIfWaiting(hasSockets: Bool) {
        if isSignalled.load(ordering: .relaxed) { return doorbell.signal() }
        // A full queue may have left messages in the sockets.
        if hasSockets { signalAgain() }
    }

    /// Becomes readable for what arrives in the port's sockets too. The caller holds the port's lock.
    ///
    /// - Throws: `descriptorLimit` and `systemCallFailed` when that is not possible.
    func watch(_ sockets: PortSockets) throws(PortError) {
        try PortError.converting(members.add(sockets.rawValue, .readable, key: Self.socketsKey))
    }
}

extension LocalPort {
    /// Gives edge-triggered loops another edge of the doorbell, if there is one, and messages wait.
    func signalDoorbellIfMessagesWait() {
        state.withLock { state in
            if !state.hasColdState { return }
            state.coldState.doorbell?.signalAgainIfWaiting(hasSockets: state.coldState.sockets != nil)
        }
    }

    func doorbell() throws(PortError) -> PortDoorbell {
        try checkProcess()
        if let doorbell = state.withLock({ $0.coldState.doorbell }) { return doorbell }
        let made = try PortDoorbell()
        defer { willReceiveElsewhere() }
        return try state.withLock { (state) throws(PortError) -> PortDoorbell in
            if state.mailbox.isDead { throw PortError(.invalidPort).at(label) }
            if let doorbell = state.coldState.doorbell { return doorbell }
            if let sockets = state.coldState.sockets { try made.watch(sockets) }
            state.mailbox.revokeLease()  // from now on each dequeue updates the doorbell
            state.coldState.doorbell = made  // the lock makes it agree with the queue
            return made
        }
    }
}
