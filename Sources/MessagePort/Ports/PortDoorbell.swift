// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// A descriptor that is readable while messages wait at a port: for loops that are not this library's, such as
/// `epoll(7)`, `poll(2)`, a `DispatchSource`, or CoreFoundation's run loop.
///
/// ``MachPort/doorbell()`` makes it. Wait for its ``descriptor`` to be readable, then take messages with
/// ``MachPort/tryReceive()``; never read the descriptor itself.
///
/// What holds under every interleaving:
/// - While a message waits, in the queue or in a socket, it is readable.
/// - Of a port that is used within its process, it is readable exactly then.
/// - Of a port that other processes reach, it is also readable for what has arrived and is no message: a new
///   connection, the end of one, a piece of a large message, news of a requester. `tryReceive` then deals with that and
///   returns nil; once nothing is left it is not readable any more. The kernel cannot tell the one from the other
///   before it is read.
/// - Once the port is invalid it is readable for good, and `tryReceive` throws.
///
/// - Important: A loop that is told of changes only (`EPOLLET`, CoreFoundation) takes messages until `tryReceive` gives
///   nil. When that has left something unread, it rings again.
///
/// - Important: Thread safety: any thread.
public final class PortDoorbell: Sendable {
    private let members: EpollSet  // immutable
    private let bell: EventDescriptor  // immutable
    private let isRung = Atomic<Bool>(false)  // changed under the port's lock

    private static let bellKey: UInt64 = 1
    private static let socketsKey: UInt64 = 2

    init() throws(PortError) {
        do throws(SystemError) {
            bell = try EventDescriptor()
            members = try EpollSet()
            try members.add(bell.raw, .readable, key: Self.bellKey)
        } catch {
            throw PortError(error)
        }
    }

    /// The descriptor: open as long as this object or the port is there; it stays the library's.
    public var descriptor: Int32 { members.raw }

    /// Follows a change of the port's queue. The caller holds the port's lock, so that rings keep the order of the
    /// changes.
    func match(_ mailbox: borrowing MailboxState) {
        let shouldRing = mailbox.isDead || !mailbox.queue.isEmpty
        if shouldRing == isRung.load(ordering: .relaxed) { return }
        isRung.store(shouldRing, ordering: .relaxed)
        if shouldRing { bell.ring() } else { bell.silence() }
    }

    /// Something is left in the sockets: whoever is told of changes only is told of one. Where nothing is left after
    /// all, nobody sees it. The caller holds the port's lock.
    func ringAgain() {
        if isRung.load(ordering: .relaxed) { return }
        bell.ring()
        bell.silence()
    }

    /// Is readable for what arrives in the port's sockets too. The caller holds the port's lock.
    ///
    /// - Returns: why that is not possible.
    func watch(_ sockets: PortSockets) -> PortError? {
        do throws(SystemError) {
            try members.add(sockets.rawValue, .readable, key: Self.socketsKey)
            return nil
        } catch {
            return PortError(error)
        }
    }
}

extension LocalPort {
    func doorbell() throws(PortError) -> PortDoorbell {
        try checkProcess()
        if let bell = state.withLock({ $0.extras.bell }) { return bell }
        let made = try PortDoorbell()
        let result = state.withLock { state -> Result<PortDoorbell, PortError> in
            if state.mailbox.isDead { return .failure(PortError(.invalidPort).at(label)) }
            if let bell = state.extras.bell { return .success(bell) }
            if let sockets = state.extras.sockets, let failure = made.watch(sockets) { return .failure(failure) }
            state.mailbox.reclaim()  // whoever takes a message from now on rings or silences it
            made.match(state.mailbox)
            state.extras.bell = made
            return .success(made)
        }
        willReceiveElsewhere()
        return try result.get()
    }
}
