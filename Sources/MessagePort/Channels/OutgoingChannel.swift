// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The sending side of a connection: the socket, and the ring beside it once there is one. `OutgoingPath` decides which
// of the two carries the next packet; this makes the system calls. One thread sends at a time: the caller holds the
// connection's send lock.
//
// A packet in the ring needs no system call while its consumer is awake. A parked consumer is woken through its wake
// channel, one that sleeps otherwise by a packet over the socket. Docs/MemoryOrder.md has the proof that no packet is
// missed.

import PortCLibrary
import PortSystem
import Synchronization

/// Why a packet cannot be sent.
enum SendFailure: Error {
    /// The peer reads nothing more.
    case peerClosed
    /// The peer has written values into its ring that no consumer writes.
    case malformedRing
    case refused(SystemError)
    /// The packet is in the ring, and the kernel does not let this process wake its consumer.
    case cannotWake(SystemError)
}

struct OutgoingChannel: ~Copyable, Sendable {
    /// The largest payload of a piece of a message for a ring, in bytes. A packet that was made for the socket may be
    /// larger.
    static var ringPieceLimit: Int { SharedRing.capacity / Tuning.piecesInRing - PacketHeader.size - recordHeadSize }
    private static let recordHeadSize = 8

    private let descriptor: SharedDescriptor  // immutable
    private let isPortsEnd: Bool  // immutable
    /// The path of the next packet. Changed by the thread that sends, or receives.
    let path: Mutex<OutgoingPath>

    init(_ descriptor: SharedDescriptor, isPortsEnd: Bool) {
        self.descriptor = descriptor
        self.isPortsEnd = isPortsEnd
        path = Mutex(OutgoingPath(use: isPortsEnd ? .never : .standard))
    }

    /// Sends one packet if there is room for it. Before each try it asks whether the connection is open, which may end
    /// while this waits for the consumer.
    ///
    /// - Returns: false when there is no room.
    func offer(_ packet: OutgoingPacket, while isOpen: () -> Bool) throws(SendFailure) -> Bool {
        var deadline: MonotonicInstant?
        while true {
            if !isOpen() { throw .peerClosed }
            var step = path.withLock { $0.route(packet) }
            if case .full = step {
                let end = deadline ?? .after(isPortsEnd ? Tuning.replierTimeout : Tuning.senderTimeout)
                deadline = end
                if waitForConsumer(until: end) { continue }
                step = path.withLock { $0.leaveRing() }
            }
            switch step {
            case .socket:
                return try offerToSocket(packet)
            case .promised:
                guard try offerToSocket(packet) else { return false }
                path.withLock { $0.didKeepPromise() }
                return true
            case .announce:
                guard try offerToSocket(OutgoingPacket(header: PacketHeader(kind: .pathChange))) else { return false }
                path.withLock { $0.didAnnounce() }
            case .written(let notice):
                if try follow(notice) { return true }
                path.withLock { $0.ringDidClose() }
            case .closed: path.withLock { $0.ringDidClose() }
            case .broken, .full: throw .malformedRing
            }
        }
    }

    /// Sends one packet over the socket if there is room for it.
    ///
    /// - Returns: false when there is none.
    private func offerToSocket(_ packet: OutgoingPacket) throws(SendFailure) -> Bool {
        let outcome: SendOutcome
        do throws(SystemError) {
            outcome =
                try packet.header.kind == .owner
                ? sysSendCredentials(descriptor.rawValue, head: packet.header.words)
                : sysSendPacket(
                    descriptor.rawValue, head: packet.header.words, firstWord: packet.firstWord, body: packet.payload,
                    tail: packet.tail, descriptors: packet.descriptors)
        } catch {
            throw .refused(error)
        }
        switch outcome {
        case .sent: return true
        case .wouldBlock: return false
        case .peerClosed: throw .peerClosed
        }
    }

    /// Whether there may be room in the socket.
    var isWritable: Bool { ((try? sysPoll(descriptor.rawValue, .writable, until: .distantPast)) ?? []) != [] }

    /// Waits until there may be room in the socket, or the deadline.
    func waitForRoom(until deadline: MonotonicInstant) throws(SystemError) {
        _ = try sysPoll(descriptor.rawValue, .writable, until: deadline)
    }

    /// Does what a packet in the ring requires.
    ///
    /// - Returns: false when the consumer has closed the ring and does not take the packet: it is still to be sent.
    func follow(_ notice: OutgoingPath.Notice) throws(SendFailure) -> Bool {
        switch notice {
        case .none: break
        case .wakeUp(let mayPoll):
            if mayPoll { waitForConsumerToWake() }
            try wakeConsumer()
        case .checkLiveness: try checkConsumerLives()
        case .closing: return try awaitEndOfRing()
        }
        return true
    }

    /// The consumer closes the ring, and a packet was written meanwhile: waits until its fate is decided. At the
    /// port's end, whose connection ends then, this does not wait.
    ///
    /// No spin: it waits on a single processor too, makes a system call for each check, and yields each time, for as
    /// long as the consumer needs to run.
    ///
    /// - Returns: whether it takes the packet.
    private func awaitEndOfRing() throws(SendFailure) -> Bool {
        let deadline = isPortsEnd ? .distantPast : MonotonicInstant.after(Tuning.closingTimeout)
        while true {
            if let isRead = path.withLock({ $0.isLastRead }) { return isRead }
            let events = (try? sysPoll(descriptor.rawValue, .peerClosed, until: .distantPast)) ?? []
            if .now > deadline || !events.isDisjoint(with: .hangUpOrError) { throw .peerClosed }
            sysYield()
        }
    }

    /// Wakes a consumer that sleeps: the ring has data.
    private func wakeConsumer() throws(SendFailure) {
        switch path.withLock({ $0.beginWakeUp() }) {
        case .none: break
        case .wakeUp: try sendWakeUp()
        case .wake(let waker):
            if !waker.wake() {
                path.withLock { $0.didFailToWake() }
                return try sendWakeUp()
            }
            if path.withLock({ $0.isLivenessCheckDue }) { try checkConsumerLives() }
        }
    }

    /// The ring is full. A consumer with its own processor that is reading makes room sooner than a system call would
    /// return. The time is checked first: a slow consumer delays its sender no longer than one that has stopped.
    ///
    /// - Returns: whether there may be room.
    private func waitForConsumer(until end: MonotonicInstant) -> Bool {
        ProcessorAllowance.shared.spin(until: end, pauses: Tuning.pausesBetweenChecks, yields: true) {
            path.withLock { $0.hasConsumerMoved() }
        }
    }

    /// "Asleep" means that the consumer wants a wake-up: also while it handles what it has read. Of two that answer each
    /// other, the consumer mostly polls again before a wake-up, three system calls, would have reached it.
    private func waitForConsumerToWake() {
        ProcessorAllowance.shared.spin(until: .after(Tuning.timeBeforeWakeUp), pauses: Tuning.pausesBeforeWakeUp) {
            path.withLock { !$0.isConsumerAsleep }
        }
    }

    /// Wakes the consumer by a packet over the socket.
    private func sendWakeUp() throws(SendFailure) {
        var failure = SystemError(ENOBUFS)
        for _ in 0..<Tuning.wakeUpTries {
            let outcome: SendOutcome
            do throws(SystemError) {
                outcome = try trySendWakeUp()
            } catch {
                failure = error
                continue
            }
            switch outcome {
            case .sent: return
            case .wouldBlock: continue  // there is room now
            case .peerClosed: return try checkConsumerDidClose()
            }
        }
        throw .cannotWake(failure)
    }

    /// - Returns: `sent` also when the socket is full: then it is readable.
    private func trySendWakeUp() throws(SystemError) -> SendOutcome {
        let outcome = try sysSendPacket(descriptor.rawValue, head: PacketHeader(kind: .wakeUp).words)
        guard case .wouldBlock = outcome else { return outcome }
        return try sysPoll(descriptor.rawValue, .writable, until: .distantPast).contains(.writable) ? outcome : .sent
    }

    /// No packet has gone to the peer over the socket for a while: by its own account it is awake or parked. Checks
    /// that it has not ended.
    private func checkConsumerLives() throws(SendFailure) {
        path.withLock { $0.didCheckLiveness() }
        // That nothing more comes from it may be due to this end: its port is gone.
        let events = (try? sysPoll(descriptor.rawValue, .peerClosed, until: .distantPast)) ?? []
        if !events.isDisjoint(with: [.hangUp, .error]) { try checkConsumerDidClose() }
    }

    /// A packet was written, and the peer is gone. If the peer has closed the ring, it did so after the packet, and
    /// drops it as it drops what is in a socket. If it has not, it was killed: the packet will not be read, but it may
    /// have been read before, and then it was sent.
    private func checkConsumerDidClose() throws(SendFailure) {
        if !path.withLock({ $0.isClosed || $0.isRead }) { throw .peerClosed }
    }
}
