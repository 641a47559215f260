// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A port between two owners: all that it consists of, besides its descriptors. A plain value, and its bytes. What comes
// from another process is checked when it is decoded: a value that was decoded is one that could have been encoded.
//
// The descriptors of the port travel beside it, in this order: the listener; the lock of its path, if there is one; the
// locks of its names; the sockets of the connections; the ends of the pipes that count its rights, of the open one both;
// what has come of the messages that are partly assembled; those of the queued messages.

import PortSystem

struct PortSnapshot: Equatable, Sendable {
    /// A message in the queue.
    struct Message: Equatable, Sendable {
        var id: Int32
        var componentCount: Int
        /// Its records.
        var payload: [UInt8]
        var descriptorCount: Int
        /// The index of the connection over which it came, or over which what is answered is awaited; nil for none.
        var connection: Int?
        /// The token under which an answer is owed over that connection; zero for none.
        var asks: UInt64 = 0
        /// Whether its sender does not await the answer any more.
        var isAbandoned = false
        /// When its sender wants a confirmation, as in the header of its packet; zero for no confirmation.
        var confirmation: UInt64 = 0
        /// Whether it came through a send-once right.
        var cameByReplyRight = false
        /// Which process has sent it, where that is not the one at the other end of the connection.
        var sender: Sender?
    }

    /// A name of the port: a file.
    struct Name: Equatable, Sendable {
        var directory: String
        var file: String
    }

    struct Sender: Equatable, Sendable {
        var process: Int32
        var user: UInt32
        var group: UInt32
    }

    /// A connection of a client.
    struct Connection: Equatable, Sendable {
        /// Whether it has sent messages, or has only asked about the port.
        var use: UInt8
        /// The last token under which the port's end has asked.
        var lastToken: UInt64
        /// The number under which what it may send was counted; zero for none.
        var creditKey: UInt64 = 0
        /// How many numbers the peer may still choose.
        var renames: UInt32 = 0
        /// The most of them.
        static let renameLimit: UInt32 = 64
        /// A message of which a part has come.
        var partial: PacketAssembly.Snapshot?
        /// Whether it has had rings, or was offered some.
        var hadRings = false
        /// Whether it has brought the read end of a pipe.
        var hasAnnounced = false
        /// Packets that were in a ring.
        var unread: [Packet] = []

        /// How many descriptors travel with it, besides its socket.
        var descriptorCount: Int {
            (partial?.descriptorCount ?? 0) + unread.reduce(0) { $0 + ($1.descriptorCount ?? 0) }
        }
    }

    /// A packet that was read, and not handled.
    struct Packet: Equatable, Sendable {
        /// Its head.
        var head: [UInt8]
        var payload: [UInt8]
        /// Nil when its descriptors were lost.
        var descriptorCount: Int?
    }

    /// What counts the port's senders, besides the connections.
    struct Presence: Equatable, Sendable {
        var isCounting = false
        /// Whether another process had a right.
        var hasHadClients = false
        /// Whether there is a pipe whose end travels with rights.
        var hasOpenPipe = false
        /// Whether there is one whose end the port has released.
        var hasReleasedPipe = false
        /// The pipes that clients have brought: the connection of each client, if it is there.
        var announcers: [Int?] = []

        var descriptorCount: Int { (hasOpenPipe ? 2 : 0) + (hasReleasedPipe ? 1 : 0) + announcers.count }
    }

    /// What the port has counted.
    struct Counts: Equatable, Sendable {
        var messages = 0
        var bytes = 0
        var dropped = 0
        var highWater = 0
    }

    var address: PortAddress
    var queueLimit: Int
    var policy: QueuePolicy
    var limits: PeerLimits
    var counts = Counts()
    var names: [Name] = []
    var presence = Presence()
    var connections: [Connection] = []
    var messages: [Message] = []

    /// How many descriptors travel beside it.
    var descriptorCount: Int {
        2 + names.count + connections.count + presence.descriptorCount
            + connections.reduce(0) { $0 + $1.descriptorCount }
            + messages.reduce(0) { $0 + $1.descriptorCount }
    }
}

// MARK: - Bytes

extension PortSnapshot {
    /// The most descriptors of one kind: as many as a process may have in a usual system (`fs.nr_open`).
    static let descriptorLimit = 1 << 20

    /// The first byte of its bytes: they have another form when it is another.
    private static let form: UInt8 = 1

    var encoded: [UInt8] {
        var writer = MessageWriter()
        writer.write(self)
        return writer.bytes
    }

    /// Reads it; nil when the bytes are not those of a port.
    init?(encoded bytes: [UInt8]) {
        var reader = MessageReader(bytes)
        guard let read = try? reader.read(PortSnapshot.self), (try? reader.finish()) != nil else { return nil }
        self = read
    }
}

extension PortSnapshot: MessageContent {
    init(from reader: inout MessageReader) throws(PortError) {
        let form: UInt8 = try reader.read()
        if form != Self.form { throw reader.malformed("no port of this form") }
        guard let address = PortAddress(received: try reader.read()) else { throw reader.malformed("no address") }
        self.address = address
        queueLimit = try reader.read()
        guard (1..<Int(UInt16.max)).contains(queueLimit), let policy = QueuePolicy(number: try reader.read()) else {
            throw reader.malformed("no queue")
        }
        self.policy = policy
        limits = try reader.readLimits()
        counts = try reader.read()
        names = try reader.readList()
        presence = try reader.read()
        connections = try reader.readList()
        messages = try reader.read()
        let count = connections.count
        let indices = messages.map(\.connection) + presence.announcers
        if indices.contains(where: { $0.map { $0 >= count } ?? false }) { throw reader.malformed("no connection") }
    }

    func write(to writer: inout MessageWriter) {
        writer.write(Self.form)
        writer.write(address.path)
        writer.write(queueLimit)
        writer.write(policy.number)
        writer.write(limits)
        writer.write(counts)
        writer.write(names)
        writer.write(presence)
        writer.write(connections)
        writer.write(messages)
    }
}

extension PortSnapshot.Message: MessageContent {
    init(from reader: inout MessageReader) throws(PortError) {
        id = try reader.read()
        componentCount = try reader.read()
        payload = try reader.read()
        descriptorCount = try reader.read()
        let index: UInt32? = try reader.read()
        connection = index.map { Int($0) }
        asks = try reader.read()
        isAbandoned = try reader.read()
        confirmation = try reader.read()
        cameByReplyRight = try reader.read()
        sender = try reader.read()
        guard (0...MessageLimits.components).contains(componentCount),
            (0...MessageLimits.components).contains(descriptorCount),
            confirmation == 0 || SendConfirmation(rawValue: confirmation) != nil && asks != 0,
            asks == 0 || connection != nil
        else { throw reader.malformed("no message") }
    }

    func write(to writer: inout MessageWriter) {
        writer.write(id)
        writer.write(componentCount)
        writer.write(payload)
        writer.write(descriptorCount)
        writer.write(connection.map { UInt32(clamping: $0) })
        writer.write(asks)
        writer.write(isAbandoned)
        writer.write(confirmation)
        writer.write(cameByReplyRight)
        writer.write(sender)
    }
}

extension PortSnapshot.Name: MessageContent {
    init(from reader: inout MessageReader) throws(PortError) {
        directory = try reader.read()
        file = try reader.read()
    }

    func write(to writer: inout MessageWriter) {
        writer.write(directory)
        writer.write(file)
    }
}

extension PortSnapshot.Sender: MessageContent {
    init(from reader: inout MessageReader) throws(PortError) {
        process = try reader.read()
        user = try reader.read()
        group = try reader.read()
    }

    func write(to writer: inout MessageWriter) {
        writer.write(process)
        writer.write(user)
        writer.write(group)
    }
}

extension PortSnapshot.Connection: MessageContent {
    /// The most that no connection reaches: tokens are counted.
    private static let tokenLimit = UInt64(1) << 62

    init(from reader: inout MessageReader) throws(PortError) {
        use = try reader.read()
        lastToken = try reader.read()
        creditKey = try reader.read()
        renames = try reader.read()
        // One for each move that has crossed with a number, and those are few.
        if renames > Self.renameLimit { throw reader.malformed("too many numbers of a connection") }
        partial = try reader.read()
        hadRings = try reader.read()
        hasAnnounced = try reader.read()
        unread = try reader.read()
        if use > 2 { throw reader.malformed("no use of a connection") }
        if lastToken > Self.tokenLimit { throw reader.malformed("no token") }
    }

    func write(to writer: inout MessageWriter) {
        writer.write(use)
        writer.write(lastToken)
        writer.write(creditKey)
        writer.write(renames)
        writer.write(partial)
        writer.write(hadRings)
        writer.write(hasAnnounced)
        writer.write(unread)
    }
}

extension PortSnapshot.Packet: MessageContent {
    init(from reader: inout MessageReader) throws(PortError) {
        head = Array(try reader.readRaw(count: PacketHeader.size))
        payload = try reader.read()
        descriptorCount = try reader.read()
        if PacketHeader(head) == nil || !(0...packetDescriptorLimit).contains(descriptorCount ?? 0) {
            throw reader.malformed("no packet")
        }
    }

    func write(to writer: inout MessageWriter) {
        writer.write(raw: head)
        writer.write(payload)
        writer.write(descriptorCount)
    }
}

extension PortSnapshot.Presence: MessageContent {
    init(from reader: inout MessageReader) throws(PortError) {
        isCounting = try reader.read()
        hasHadClients = try reader.read()
        hasOpenPipe = try reader.read()
        hasReleasedPipe = try reader.read()
        let indices: [UInt32?] = try reader.readList()
        announcers = indices.map { $0.map { Int($0) } }
    }

    func write(to writer: inout MessageWriter) {
        writer.write(isCounting)
        writer.write(hasHadClients)
        writer.write(hasOpenPipe)
        writer.write(hasReleasedPipe)
        writer.write(announcers.map { $0.map { UInt32(clamping: $0) } })
    }
}

extension PortSnapshot.Counts: MessageContent {
    /// The most that no port reaches: more is added.
    private static let limit = 1 << 62

    init(from reader: inout MessageReader) throws(PortError) {
        messages = try reader.read()
        bytes = try reader.read()
        dropped = try reader.read()
        highWater = try reader.read()
        if ![messages, bytes, dropped, highWater].allSatisfy({ (0...Self.limit).contains($0) }) {
            throw reader.malformed("no counts")
        }
    }

    func write(to writer: inout MessageWriter) {
        writer.write(messages)
        writer.write(bytes)
        writer.write(dropped)
        writer.write(highWater)
    }
}

extension MessageReader {
    /// Reads elements with a descriptor each: in memory they are larger than here, and no process has that many.
    fileprivate mutating func readList<Element: MessageContent>() throws(PortError) -> [Element] {
        let count = try readCount()
        if count > PortSnapshot.descriptorLimit { throw malformed("more descriptors than a process has") }
        var list: [Element] = []
        for _ in 0..<count { list.append(try read()) }
        return list
    }

    fileprivate mutating func readLimits() throws(PortError) -> PeerLimits {
        var limits = PeerLimits()
        limits.connections = try read()
        limits.queuedMessages = try read()
        limits.queuedBytes = try read()
        limits.queuedDescriptors = try read()
        limits.messageBytes = try read()
        limits.processesOfUser = try read()
        if !limits.isPossible { throw malformed("no limits") }
        return limits
    }
}

extension MessageWriter {
    fileprivate mutating func write(_ limits: PeerLimits) {
        write(limits.connections)
        write(limits.queuedMessages)
        write(limits.queuedBytes)
        write(limits.queuedDescriptors)
        write(limits.messageBytes)
        write(limits.processesOfUser)
    }
}

extension QueuePolicy {
    fileprivate var number: UInt8 {
        switch self {
        case .refuse: 0
        case .dropOldest: 1
        case .keepLatest: 2
        }
    }

    fileprivate init?(number: UInt8) {
        switch number {
        case 0: self = .refuse
        case 1: self = .dropOldest
        case 2: self = .keepLatest
        default: return nil
        }
    }
}
