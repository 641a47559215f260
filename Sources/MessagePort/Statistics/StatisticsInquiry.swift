// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Asks other processes how their ports are: all at once, each over a connection of its own, until one deadline. So an owner
// that does not understand the question, and ends the connection, does no harm to what else goes to its port.

package import PortSystem

/// Questions that are under way.
package struct StatisticsInquiry: ~Copyable {
    /// So many ports are asked at the same time; each takes a descriptor.
    private static let simultaneous = 128
    /// Under this token each is asked.
    private static let token: UInt64 = 1

    private let addresses: [PortAddress]
    private let epoll: EpollSet
    private var answers: [PortStatistics?]
    private var sockets: [Int: SharedDescriptor] = [:]
    private var askedCount = 0

    private init(_ addresses: [PortAddress]) throws(PortError) {
        self.addresses = addresses
        answers = Array(repeating: nil, count: addresses.count)
        do throws(SystemError) {
            epoll = try EpollSet()
        } catch {
            throw PortError(error)
        }
    }

    /// Asks ports how they are. Ports of this process are looked at.
    ///
    /// - Parameters:
    ///   - addresses: where they are.
    ///   - deadline: when to give up those that have not answered.
    /// - Returns: the answers, in the same order; nil where none came: nobody is there, or has time, or understands.
    /// - Throws: `descriptorLimit`, `systemCallFailed` when nobody can be asked.
    package static func ask(_ addresses: [PortAddress], until deadline: MonotonicInstant) throws(PortError)
        -> [PortStatistics?]
    {
        var inquiry = try StatisticsInquiry(addresses)
        while inquiry.askMore(), inquiry.hear(until: deadline) {}
        return inquiry.answers
    }

    /// - Returns: whether an answer is awaited.
    private mutating func askMore() -> Bool {
        while askedCount < addresses.count, sockets.count < Self.simultaneous {
            if let own = RightsTable.shared.ownPort(at: addresses[askedCount]) {
                answers[askedCount] = own.statistics
            } else if let socket = Self.question(to: addresses[askedCount]),
                (try? epoll.add(socket.rawValue, .readable, key: UInt64(askedCount))) != nil
            {
                sockets[askedCount] = socket
            }
            askedCount += 1
        }
        return !sockets.isEmpty
    }

    private static func question(to address: PortAddress) -> SharedDescriptor? {
        guard case .connected(let socket, _)? = try? ProcessEndpoints.connect(toPath: address.path) else { return nil }
        let header = PacketHeader(kind: .statistics, asks: token)
        let outcome = try? sysSendPacket(socket.rawValue, head: header.encoded, body: [], descriptors: [])
        return outcome == .sent ? socket : nil
    }

    /// - Returns: false at the deadline.
    private mutating func hear(until deadline: MonotonicInstant) -> Bool {
        let reports = epoll.wait(until: deadline)
        for report in reports {
            let index = Int(report.key)
            guard let socket = sockets[index] else { continue }
            if let answer = Self.answer(from: socket) { answers[index] = answer }
            epoll.remove(socket.rawValue)
            sockets[index] = nil
        }
        return !reports.isEmpty
    }

    private static func answer(from socket: SharedDescriptor) -> PortStatistics? {
        guard case (.packet, let bytes)? = try? sysReceivePacket(socket.rawValue, limit: PacketHeader.packetLimit),
            let header = PacketHeader(bytes)
        else { return nil }
        var assembly = PacketAssembly()
        let event = assembly.take(header, payload: Array(bytes.dropFirst(PacketHeader.size)), descriptors: [])
        guard case .statistics(let statistics, token) = event else { return nil }
        return statistics
    }
}
