// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

// The path of the next packet: the socket, or the ring beside it. Decides, and writes into the ring.
//
//   socket ──ring empty, path change sent──▶ ring ──descriptors, no room, or wake-ups: a mark in the ring──▶ socket
//
// The mark says where the packets on the socket continue, and the path-change packet where those in the ring continue,
// so packets keep the order in which they were sent. Once on the socket, a connection stays there until the consumer
// has read all that is in the ring, so the ring never has more than one mark.
struct OutgoingPath: Sendable {
    /// What to do with a packet.
    enum Step: Sendable {
        /// Its path is the socket.
        case socket
        /// Its path is the socket, as the consumer was notified: `didKeepPromise` records that it was sent.
        case promised
        /// The ring has no room: the packet goes to the socket after `leaveRing`.
        case full
        /// A path-change packet must be sent first.
        case announce
        /// It is in the ring.
        case written(Notice)
        /// The ring is not read any more.
        case closed
        /// The peer breaks the format.
        case broken
    }

    /// What to do after a packet was written into the ring.
    enum Notice: Sendable {
        case none
        /// The consumer sleeps or is parked: `beginWakeUp` says how to wake it, unless it wakes by itself. One that was
        /// awake until now, and is not parked, may be about to poll.
        case wakeUp(mayPoll: Bool)
        /// The consumer is awake by its own account: time to check that it lives.
        case checkLiveness
        /// The consumer is closing the ring: `isLastRead` soon says whether it takes the packet.
        case closing
    }

    /// How to wake a consumer.
    enum WakeMethod: Sendable {
        /// It is awake.
        case none
        /// By a packet over the socket.
        case wakeUp
        /// By its wake channel.
        case wake(WakeSender)
    }

    /// How far both sides have agreed on rings.
    private enum Phase: Sendable {
        case none
        case offered(RingEnd)
        /// This end has them; the peer has them once it sends a path-change packet.
        case agreed
        case open
        case refused
    }

    /// What only a connection has that has got an answer to an offer of rings. A copy would share it: a path is not copied.
    fileprivate struct RingState: ColdValue, ~Copyable {
        static let blank = ColdBox<RingState>()
        var producer: RingProducer?
        /// Wakes a parked consumer; nil when it is woken over the socket.
        var waker: WakeSender?
        /// Whether packets go into the ring now.
        var usesRing = false
        /// Whether the consumer has closed the ring, perhaps because the port moves: then a packet that says so comes.
        var awaitsMove = false
        /// Whether the port has moved since there were rings, or an answer to the offer of some.
        var hasMoved = false
        /// How many packets must still go by socket.
        var socketCount = 0
        /// How many packets must go by socket because the consumer was notified of them.
        var promisedCount = 0
        /// How many packets in a row have needed a wake-up.
        var wakeUpCount = 0
        var lastLivenessCheck = MonotonicInstant.distantPast
    }

    var use: RingPolicy
    /// How many packets went by socket, as far as that counts.
    private var sentCount: Int32 = 0
    private var countStart = MonotonicInstant.distantPast
    private var phase = Phase.none
    private var coldStorage = ColdStorage<RingState>()
    private var rings: RingState {
        @inline(__always) _read { yield coldStorage.value }
        @inline(__always) _modify { yield &coldStorage.value }
    }

    /// Whether packets go into the ring now.
    var usesRing: Bool { !coldStorage.isBlank && rings.usesRing }
    /// Whether the consumer has closed the ring.
    var awaitsMove: Bool { !coldStorage.isBlank && rings.awaitsMove }

    init(use: RingPolicy) { self.use = use }

    /// The port has moved. A sender may be waiting for the end of the ring: its memory is released by the next one. An
    /// offer that is not answered will be, by the next owner.
    mutating func portDidMove() {
        switch phase {
        case .agreed, .open, .refused: rings.hasMoved = true
        case .none, .offered: break
        }
    }

    /// After a move: everything goes over the socket, and rings may be offered again. The caller holds the send lock.
    ///
    /// - Returns: what is to be released.
    mutating func resetIfMoved() -> (RingProducer?, WakeSender?) {
        if coldStorage.isBlank || !rings.hasMoved { return (nil, nil) }
        defer { (phase, sentCount, coldStorage) = (.none, 0, ColdStorage()) }
        return (rings.producer, rings.waker)
    }

    /// Whether rings should be offered before a message is sent.
    mutating func isOfferDue() -> Bool {
        guard case .none = phase else { return false }
        switch use {
        case .never: return false
        case .always: return true
        case .earned: break
        }
        guard sentCount >= Tuning.earningCount else { return false }
        let now = MonotonicInstant.coarse
        defer { (sentCount, countStart) = (0, now) }
        return countStart.advanced(by: Tuning.earningTime) >= now
    }

    /// Whether the peer has not answered an offer.
    var isOffered: Bool { if case .offered = phase { true } else { false } }

    mutating func didOffer(_ end: RingEnd) { phase = .offered(end) }

    /// The offer found no room. If a peer that breaks the format has answered it already, it stays answered.
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

    /// The ring exists. The right's end uses it from now on, the port's end once its peer does.
    mutating func open(_ ring: SharedRing, waker: WakeSender?, isPortsEnd: Bool) {
        (rings.producer, rings.waker) = (RingProducer(ring), waker)
        phase = isPortsEnd ? .agreed : .open
    }

    /// The peer uses the rings.
    mutating func peerDidOpen() {
        if case .agreed = phase { phase = .open }
    }

    /// The path-change packet was sent.
    mutating func didAnnounce() { rings.usesRing = true }

    /// The consumer was found alive.
    mutating func didCheckLiveness() { rings.lastLivenessCheck = .coarse }

    /// Whether the peer takes nothing more from the ring.
    var isClosed: Bool { rings.producer?.ring.isClosed ?? false }

    /// Whether the peer has read all that was written.
    var isRead: Bool { mutating get { rings.producer?.isEmpty() == true } }

    /// Chooses the path of a packet, and writes it into the ring if that is the path.
    mutating func route(_ packet: OutgoingPacket) -> Step {
        guard case .open = phase else {
            if sentCount < Tuning.earningCount { sentCount += 1 }
            return .socket
        }
        if !packet.descriptors.isEmpty { rings.socketCount = Tuning.packetsUntilRing }
        if rings.promisedCount > 0 { return .promised }
        if !packet.descriptors.isEmpty { return leaveRing() }
        guard rings.usesRing else {
            if rings.socketCount > 0 {
                rings.socketCount -= 1
                return .socket
            }
            guard let isEmpty = rings.producer?.isEmpty() else { return .broken }
            return isEmpty ? .announce : .socket
        }
        if rings.wakeUpCount == Tuning.wakeUpLimit { return leaveRing(promising: Tuning.sleepyCount) }
        let outcome = rings.producer?.write(
            packet.header.words, firstWord: packet.firstWord, packet.payload, tail: packet.tail)
        switch outcome {
        case .written(let state): return .written(rings.didWrite(state))
        case .closing: return .written(.closing)
        case .full: return .full
        case .closed: return .closed
        case .broken, nil: return .broken
        }
    }

    /// Writes a plain message into the ring, if that is its path, and there is room: the head of its packet, the head
    /// of its record, and its bytes.
    ///
    /// - Returns: what to do then; nil when it is not in the ring, and `route` says what to do.
    mutating func writePlain(_ head: PacketWords, firstWord: UInt64, _ bytes: [UInt8]) -> Notice? {
        coldStorage.isBlank ? nil : rings.writePlain(head, firstWord: firstWord, bytes)
    }

    /// Whether a consumer that takes nothing more takes what was written last; nil while that is not decided.
    var isLastRead: Bool? { rings.producer?.isLastRead }

    /// The kernel refuses to wake the consumer through its channel: from now on it is woken over the socket.
    mutating func didFailToWake() { rings.waker = nil }

    /// Whether the consumer waits for a wake-up over the socket.
    var isConsumerAsleep: Bool { rings.producer?.consumerState == .asleep }

    /// Marks the consumer as awake.
    ///
    /// - Returns: how to wake it; `none` when it has woken by itself.
    mutating func beginWakeUp() -> WakeMethod { rings.beginWakeUp() }

    /// Whether it is time to check that the consumer lives.
    var isLivenessCheckDue: Bool { rings.lastLivenessCheck != .coarse }

    /// A promised packet was sent over the socket.
    mutating func didKeepPromise() { rings.promisedCount -= 1 }

    /// Whether the consumer has read data since the ring was found full, or since the last call.
    mutating func hasConsumerMoved() -> Bool { rings.producer?.hasConsumerMoved() ?? true }

    /// The consumer takes nothing more from the ring: all goes over the socket, also what was not taken. If the consumer
    /// has ended, the socket says so.
    mutating func ringDidClose() {
        phase = .refused
        (rings.usesRing, rings.promisedCount, rings.awaitsMove) = (false, 0, true)
    }

    /// Changes the path to the socket for good.
    ///
    /// - Returns: false when that is not possible now: the consumer does not read what is in the ring.
    mutating func leaveForGood() -> Bool {
        if case .broken = leaveRing() { return false }
        ringDidClose()
        return true
    }

    /// Changes the path to the socket, by which at least `count` packets go.
    ///
    /// - Returns: `socket` or `promised`; otherwise why the path cannot change.
    mutating func leaveRing(promising count: Int = 0) -> Step {
        if !usesRing { return .socket }
        switch rings.producer?.writeMark(before: UInt32(count)) {
        case .written: break
        case .full, .broken, nil: return .broken
        case .closed, .closing: return .closed
        }
        (rings.usesRing, rings.promisedCount, rings.wakeUpCount) = (false, count, 0)
        return count > 0 ? .promised : .socket
    }
}

// Each is one access to the state: those of which there are several are not inlined.
extension OutgoingPath.RingState {
    fileprivate mutating func writePlain(
        _ head: PacketWords, firstWord: UInt64, _ bytes: [UInt8]
    ) -> OutgoingPath.Notice? {
        guard usesRing, wakeUpCount < Tuning.wakeUpLimit else { return nil }
        switch producer?.write(head, firstWord: firstWord, bytes) {
        case .written(let state): return didWrite(state)
        case .closing: return .closing
        case .full, .closed, .broken, nil: return nil
        }
    }

    fileprivate mutating func didWrite(_ state: SharedRing.ConsumerState) -> OutgoingPath.Notice {
        switch state {
        case .asleep: return .wakeUp(mayPoll: wakeUpCount == 0)
        case .parked: return .wakeUp(mayPoll: false)
        case .awake: break
        }
        wakeUpCount = 0
        return lastLivenessCheck == .coarse ? .none : .checkLiveness
    }

    fileprivate mutating func beginWakeUp() -> OutgoingPath.WakeMethod {
        switch producer?.beginWakeUp() {
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
}
