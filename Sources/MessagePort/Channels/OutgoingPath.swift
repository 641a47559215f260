// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import PortSystem
import RunLoopCore

// Which way the next packet takes: the socket, or the ring beside it. Decides, and writes into the ring.
//
//   socket ──ring empty, packet "lane" sent──▶ ring ──descriptors, no room, or bells: a mark in the ring──▶ socket
//
// The mark says where the packets on the socket follow, and the packet "lane" where those in the ring follow, so the
// order of all packets is that in which they were sent. Once on the socket, a connection stays there until the reader
// has read all that is in the ring, so that there is never more than one mark in it.
struct OutgoingPath: Sendable {
    /// What is to be done with a packet.
    enum Step: Sendable {
        /// It takes the socket.
        case socket
        /// It takes the socket, as the reader was told: `didKeepPromise` says that it did.
        case promised
        /// There is no room in the ring: it takes the socket after `leaveRing`.
        case full
        /// First a packet says that the ring is next.
        case announce
        /// It is in the ring.
        case written(Notice)
        /// Nobody reads the ring any more.
        case closed
        /// The peer breaks the format.
        case broken
    }

    /// What is to be done when a packet is in the ring.
    enum Notice: Sendable {
        case none
        /// The reader sleeps: unless it wakes by itself, `beginWakeUp` says that it is to be rung. One that was awake until now
        /// may be about to look.
        case wakeUp(wasAwake: Bool)
        /// The reader is parked: `beginWakeUp` says whether it still is.
        case wake
        /// The reader is awake, as it says: it is time to see whether it lives.
        case checkLiveness
        /// The reader is closing the ring: `isLastRead` says soon whether it takes the packet.
        case closing
    }

    /// How a reader is told that something is in the ring.
    enum WakeMethod: Sendable {
        /// It knows.
        case none
        /// By a packet over the socket.
        case wakeUp
        /// By its wake channel.
        case wake(WakeSender)
    }

    /// How it stands with an offer of rings.
    enum Offer: Sendable {
        case none
        /// They are to be offered.
        case due
        /// The peer has not answered.
        case pending
    }

    /// How far both sides have agreed on rings.
    private enum Phase: Sendable {
        case none
        case offered(RingEnd)
        /// This end has them; the peer says that it has, too, by the packet "lane".
        case agreed
        case open
        case refused
    }

    /// So many packets within so much time earn rings.
    static let earningCount = 64
    static let earningTime = Duration.milliseconds(250)
    /// So many packets without descriptors, after one with descriptors, until the ring is used again.
    private static let packetsUntilRing = 8
    /// After so many packets in a row for which the reader had to be woken, the socket is quicker: it carries a packet
    /// where the ring sends a bell.
    static let wakeUpLimit = 16
    /// So many packets take the socket then, until it is seen whether the reader still sleeps. It is told how many: it
    /// need not look at a packet before it takes it.
    static let sleepyCount = 128

    var use: RingUse
    private var phase = Phase.none
    private var writer: RingProducer?
    /// What wakes a reader that is parked; nil when it is rung over the socket.
    private var waker: WakeSender?
    private var isOnRing = false
    /// How many packets must still take the socket.
    private var socketCount = 0
    /// How many packets take the socket because the reader was told so.
    private var promisedCount = 0
    /// How many packets in a row have needed a bell.
    private var wakeUpCount = 0
    private var sentCount = 0
    private var countStart = MonotonicInstant.distantPast
    private var lastLivenessCheck = MonotonicInstant.distantPast

    init(use: RingUse) {
        self.use = use
    }

    /// Whether packets go into the ring now.
    var usesRing: Bool { isOnRing }

    /// What is to be done about rings before a message is sent.
    mutating func nextOffer() -> Offer {
        switch phase {
        case .none: shouldOffer() ? .due : .none
        case .offered: .pending
        case .agreed, .open, .refused: .none
        }
    }

    private mutating func shouldOffer() -> Bool {
        switch use {
        case .never: return false
        case .always: return true
        case .earned: break
        }
        guard sentCount >= Self.earningCount else { return false }
        let now = MonotonicInstant.coarse
        defer { (sentCount, countStart) = (0, now) }
        return countStart.advanced(by: Self.earningTime) >= now
    }

    /// Whether the peer has not answered an offer.
    var isOffered: Bool { if case .offered = phase { true } else { false } }

    mutating func didOffer(_ end: RingEnd) { phase = .offered(end) }

    /// The offer found no room. One that was answered before it was sent, as a peer can that breaks the format, stays answered.
    mutating func withdrawOffer() {
        if isOffered { phase = .none }
    }

    mutating func refuse() { phase = .refused }

    /// The peer has answered.
    ///
    /// - Returns: what was offered; nil when there was no offer.
    mutating func endOffer() -> RingEnd? {
        guard case .offered(let end) = phase else { return nil }
        phase = .refused
        return end
    }

    /// The ring is there. The right's end uses it from now on, the port's end once its peer does.
    mutating func open(_ ring: SharedRing, waker: WakeSender?, isPortsEnd: Bool) {
        writer = RingProducer(ring)
        self.waker = waker
        phase = isPortsEnd ? .agreed : .open
    }

    /// The peer uses the rings.
    mutating func peerDidOpen() {
        if case .agreed = phase { phase = .open }
    }

    /// The peer was told that the ring is next.
    mutating func didAnnounce() { isOnRing = true }

    /// The reader was found alive.
    mutating func didCheckLiveness() { lastLivenessCheck = .coarse }

    /// Whether the peer takes nothing more from the ring.
    var isClosed: Bool { writer?.ring.isClosed ?? false }

    /// Whether the peer has read all that was written.
    var isRead: Bool { mutating get { writer?.isEmpty() == true } }

    /// Finds the way for a packet, and writes it into the ring if that is it.
    mutating func route(_ packet: OutgoingPacket) -> Step {
        guard case .open = phase else {
            sentCount += 1
            return .socket
        }
        if !packet.descriptors.isEmpty { socketCount = Self.packetsUntilRing }
        if promisedCount > 0 { return .promised }
        if !packet.descriptors.isEmpty { return leaveRing() }
        guard isOnRing else {
            if socketCount > 0 {
                socketCount -= 1
                return .socket
            }
            guard let isEmpty = writer?.isEmpty() else { return .broken }
            return isEmpty ? .announce : .socket
        }
        if wakeUpCount == Self.wakeUpLimit {
            return leaveRing(promising: Self.sleepyCount)
        }
        switch writer?.write(packet.header.words, lead: packet.lead, packet.payload, tail: packet.tail) {
        case .written(let state): return .written(didWrite(state))
        case .closing: return .written(.closing)
        case .full: return .full
        case .closed: return .closed
        case .broken, nil: return .broken
        }
    }

    /// Writes a plain message into the ring, if that is its way, and there is room.
    ///
    /// - Parameters:
    ///   - head: the head of its packet.
    ///   - lead: the head of its record.
    ///   - bytes: its bytes.
    /// - Returns: what is to be done then; nil when it is not in the ring, and `route` says what to do.
    mutating func writePlain(_ head: PacketWords, lead: UInt64, _ bytes: [UInt8]) -> Notice? {
        guard isOnRing, wakeUpCount < Self.wakeUpLimit else { return nil }
        switch writer?.write(head, lead: lead, bytes) {
        case .written(let state): return didWrite(state)
        case .closing: return .closing
        case .full, .closed, .broken, nil: return nil
        }
    }

    /// Whether a reader that takes nothing more takes what was written last; nil while it has not said so.
    var isLastRead: Bool? { writer?.isLastRead }

    /// The kernel refuses to wake the reader by its channel: the socket is rung from now on.
    mutating func didFailToWake() { waker = nil }

    private mutating func didWrite(_ state: SharedRing.ReaderState) -> Notice {
        switch state {
        case .asleep: return .wakeUp(wasAwake: wakeUpCount == 0)
        case .parked: return .wake
        case .awake: break
        }
        wakeUpCount = 0
        return isLivenessCheckDue ? .checkLiveness : .none
    }

    /// Whether the reader waits for a bell.
    var isReaderAsleep: Bool { writer?.readerState == .asleep }

    /// Has the reader count as awake.
    ///
    /// - Returns: how it is to be told; not at all when it has woken by itself.
    mutating func beginWakeUp() -> WakeMethod {
        switch writer?.beginWakeUp() {
        case .awake, nil:
            wakeUpCount = 0
            return .none
        case .parked:
            guard let waker else { break }
            wakeUpCount = 0
            return .wake(waker)
        case .asleep: break
        }
        wakeUpCount += 1
        return .wakeUp
    }

    /// Whether it is time to see whether the reader lives.
    var isLivenessCheckDue: Bool { lastLivenessCheck != .coarse }

    /// A packet has taken the socket, as promised.
    mutating func didKeepPromise() { promisedCount -= 1 }

    /// Whether the reader has read something since the ring was found full, or this was asked last.
    mutating func hasReaderMoved() -> Bool { writer?.hasReaderMoved() ?? true }

    /// Packets take the socket from now on.
    ///
    /// - Parameter count: so many at least.
    /// - Returns: `socket` or `promised`, or why not.
    mutating func leaveRing(promising count: Int = 0) -> Step {
        if !isOnRing { return .socket }
        switch writer?.writeMark(before: UInt32(count)) {
        case .written: break
        case .full, .broken, nil: return .broken
        case .closed, .closing: return .closed
        }
        (isOnRing, promisedCount, wakeUpCount) = (false, count, 0)
        return count > 0 ? .promised : .socket
    }
}

/// What one end of a connection brings for its rings: memory that it alone writes, and the channel by which its loop is woken.
final class RingEnd: Sendable {
    let memory: SharedMemory  // immutable
    let wakeChannel: WakeChannelWatch  // immutable
    /// Of the budget for channels: this end's descriptor, and the peer's.
    private static let channelCount = 2

    private init(_ memory: SharedMemory, _ channel: WakeChannel) {
        self.memory = memory
        wakeChannel = WakeChannelWatch(channel)
    }

    deinit {
        DescriptorBudget.wakeChannels.release(Self.channelCount)
    }

    /// Makes an end.
    ///
    /// - Returns: the end, and what the peer is to get: the memory's file, and the other end of the channel.
    /// - Throws: EMFILE, also where the process has enough channels; why there is no memory.
    static func make() throws(SystemError) -> (end: RingEnd, descriptors: [SharedDescriptor]) {
        guard DescriptorBudget.wakeChannels.reserve(channelCount) else { throw SystemError(EMFILE) }
        do throws(SystemError) {
            let (memory, file) = try SharedMemory.make(size: SharedRing.memorySize)
            let (channel, sending) = try WakeChannel.make()
            return (RingEnd(memory, channel), [file, sending])
        } catch {
            DescriptorBudget.wakeChannels.release(channelCount)
            throw error
        }
    }
}

/// When the right's end of a connection offers rings.
enum RingUse: String, Sendable {
    /// With the first message.
    case always
    /// Once there was traffic that is worth them.
    case earned
    case never

    /// What the environment says at the first connection (`PORT_RING`); without a word there, once they are earned.
    static let standard = sysEnvironment("PORT_RING").flatMap(RingUse.init) ?? .earned
}
