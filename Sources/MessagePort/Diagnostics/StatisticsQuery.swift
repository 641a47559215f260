// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem
import RunLoopCore
import Synchronization

// Asks other processes for the statistics of their ports: many at once, each over a connection of its own, until one
// deadline. So when an owner that does not understand the query ends the connection, other traffic to its port is
// unaffected.
//
// Each connection uses a descriptor, so the number of open ones is limited. With more ports than that, each has its
// share of the time: one that has not answered by then yields its slot to one that was not asked yet.

/// The answer of a port's owner.
package enum StatisticsReply: Hashable, Sendable {
    case answered(PortStatistics)
    /// It lives, and has not answered in time: it is stopped, or busy while only its own threads may accept the query.
    case busy
    /// It is gone, does not talk to this process, or does not understand.
    case silent

    package var statistics: PortStatistics? {
        if case .answered(let statistics) = self { statistics } else { nil }
    }
}

/// Queries of many ports that are under way.
package struct StatisticsQuery: ~Copyable {
    /// The token of each query.
    private static let token: UInt64 = 1

    /// Connects to a port, without waiting.
    package typealias Connect = RemotePort.Connect

    private let addresses: [PortAddress]
    private let connect: Connect
    private let deadline: MonotonicInstant
    /// The time that each has when others wait for its slot.
    private let share: Duration
    private let epoll: EpollSet
    private var answers: [StatisticsReply]
    private var open: [Int: (query: PortQuery, since: MonotonicInstant)] = [:]
    private var askedCount = 0

    private init(
        _ addresses: [PortAddress], until deadline: MonotonicInstant, connecting connect: @escaping Connect
    ) throws(PortError) {
        self.addresses = addresses
        self.connect = connect
        self.deadline = deadline
        let roundCount = max(1, (addresses.count + Tuning.simultaneousQueries - 1) / Tuning.simultaneousQueries)
        share = max(.zero, MonotonicInstant.now.duration(to: deadline)) / roundCount
        answers = Array(repeating: .silent, count: addresses.count)
        epoll = try PortError.converting(EpollSet())
    }

    /// Asks ports for their statistics. Those of ports of this process are read directly. Each port is asked, even if
    /// the deadline for the answers is past.
    ///
    /// - Returns: the answers, in the same order.
    /// - Throws: `descriptorLimit`, `systemCallFailed` when no port can be asked.
    package static func ask(
        _ addresses: [PortAddress], until deadline: MonotonicInstant,
        connecting connect: @escaping Connect = { (address) throws(PortError) in
            try ProcessEndpoints.connect(toPath: address.path)
        }
    ) throws(PortError) -> [StatisticsReply] {
        var query = try StatisticsQuery(addresses, until: deadline, connecting: connect)
        while try query.askMore() {
            if !query.receive(until: query.nextEnd) { query.endExpired() }
        }
        return query.answers
    }

    /// The same in a task, which blocks no thread while it waits.
    ///
    /// - Throws: `cancelled`, too.
    nonisolated(nonsending) package static func ask(
        _ addresses: [PortAddress], until deadline: MonotonicInstant,
        connecting connect: @escaping Connect = { (address) throws(PortError) in
            try ProcessEndpoints.connect(toPath: address.path)
        }
    ) async throws(PortError) -> [StatisticsReply] {
        var query = try StatisticsQuery(addresses, until: deadline, connecting: connect)
        while try query.askMore() {
            try await TaskWaiter.wait(for: query.epoll.raw, until: query.nextEnd)
            if Task.isCancelled { throw PortError(.cancelled) }
            if !query.receive(until: .distantPast) { query.endExpired() }
        }
        return query.answers
    }

    private var hasUnasked: Bool { askedCount < addresses.count }

    /// - Returns: whether an answer is awaited.
    private mutating func askMore() throws(PortError) -> Bool {
        while hasUnasked, open.count < Tuning.simultaneousQueries {
            let index = askedCount
            if let own = RightsTable.shared.ownPort(at: addresses[index]) {
                answers[index] = .answered(own.statistics)
            } else {
                do throws(PortError) {
                    try ask(index)
                } catch {
                    // Without a descriptor it waits for the slot of another.
                    if error.code == .descriptorLimit {
                        if open.isEmpty { throw error }
                        return true
                    }
                }
            }
            askedCount += 1
        }
        return !open.isEmpty
    }

    private mutating func ask(_ index: Int) throws(PortError) {
        switch try connect(addresses[index]) {
        case .busy: answers[index] = .busy
        case .dead: break
        case .connected(let socket, _):
            guard let query = try PortQuery(PacketHeader(kind: .statistics, asks: Self.token), over: socket) else {
                break
            }
            try PortError.converting(epoll.add(query.rawValue, .readable, key: UInt64(index)))
            open[index] = (query, .now)
        }
    }

    /// When the next one must yield its slot.
    private var nextEnd: MonotonicInstant {
        guard hasUnasked, let first = open.values.map(\.since).min() else { return deadline }
        return min(deadline, first.advanced(by: share))
    }

    /// - Returns: false when nothing came in time.
    private mutating func receive(until deadline: MonotonicInstant) -> Bool {
        let reports = epoll.wait(until: deadline)
        for report in reports {
            let index = Int(report.key)
            guard let query = open[index]?.query else { continue }
            switch (try? query.receive()) ?? nil {
            case .statistics(let statistics, Self.token)?: answers[index] = .answered(statistics)
            case .portMoved?, .ownerNamed?: continue  // the next owner answers
            default: break
            }
            open[index] = nil
            epoll.remove(query.rawValue)
        }
        return !reports.isEmpty
    }

    /// Ends the queries whose time is up.
    private mutating func endExpired() {
        let now = MonotonicInstant.now
        for (index, entry) in open where now >= deadline || hasUnasked && entry.since.advanced(by: share) <= now {
            answers[index] = .busy
            epoll.remove(entry.query.rawValue)
            open[index] = nil
        }
    }
}

extension SendRight {
    /// What the right's port has counted. A port of another process is asked over a connection: a thread of the library
    /// answers there, also while the port's handler runs or no thread receives. It first receives what has arrived, as far
    /// as the queue has room, so that this counts as waiting; of very much that has arrived it receives a part. The query
    /// uses no slot of the queue. Where the port has a policy of the program's (``PeerPolicy/init(_:)``), or the socket of
    /// a supervisor, the threads that receive for it answer.
    ///
    /// The query has a connection of its own, which is not counted among the port's senders.
    ///
    /// - Parameter limit: how long to wait for the answer.
    /// - Returns: the statistics; nil when no answer came: the port is gone, its owner is stopped or busy for longer than
    ///   the limit, or does not know the query; no port has the right's name; or the right has no address, as that of
    ///   ``bootstrap()`` may have none.
    /// - Throws: ``PortError/Code/forkedProcess``; ``PortError/Code/descriptorLimit``,
    ///   ``PortError/Code/systemCallFailed``.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    public func statistics(within limit: Duration) throws(PortError) -> PortStatistics? {
        try destination.checkProcess()
        if let known = localStatistics { return known }
        guard let address = try addressToAsk() else { return nil }
        return try StatisticsQuery.ask([address], until: .after(limit))[0].statistics
    }

    /// What the right's port has counted, as the blocking form says. Suspends the task until the answer comes; one
    /// thread, shared by all asynchronous calls of the process, watches.
    ///
    /// - Parameter limit: how long to wait for the answer.
    /// - Returns: as the blocking form.
    /// - Throws: what the blocking form throws; ``PortError/Code/cancelled``.
    nonisolated(nonsending) public func statistics(within limit: Duration) async throws(PortError) -> PortStatistics? {
        if Task.isCancelled { throw PortError(.cancelled) }
        try destination.checkProcess()
        if let known = localStatistics { return known }
        guard let address = try addressToAsk() else { return nil }
        return try await StatisticsQuery.ask([address], until: .after(limit))[0].statistics
    }

    /// What a port of this process has counted; nil when it has ended. No value when another process has the port.
    private var localStatistics: PortStatistics?? {
        guard let localPort = destination as? LocalPort, localPort.successor == nil else { return nil }
        return .some(localPort.isDead ? nil : localPort.statistics)
    }

    /// Where the port is; of a right to a name the present owner.
    private func addressToAsk() throws(PortError) -> PortAddress? {
        if destination is DeadPort { return nil }
        do throws(PortError) {
            return try destination.address()
        } catch {
            if error.code == .invalidPort { return nil }
            throw error
        }
    }
}

extension SendRight {
    /// The process at the other end of the connection to the port, as the kernel knows it; nil without a connection.
    package var connectedProcess: Int32? { (destination as? RemotePort)?.connection?.peer.processID }

    /// How many bytes this process has sent to the port, with 8 for each component; none to a port of its own. It rises
    /// while a large message is under way.
    package var sentByteCount: Int {
        (destination as? RemotePort)?.connection?.sentByteCount ?? 0
    }
}

extension MachPort {
    /// What the port has counted, all of one moment. It costs one lock, and no system call. Messages that are still in
    /// the port's sockets do not count.
    public var statistics: PortStatistics { localPort.statistics }
}
