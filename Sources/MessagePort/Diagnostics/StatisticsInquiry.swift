// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Asks other processes for the statistics of their ports: many at once, each over a connection of its own, until one
// deadline. So when an owner that does not understand the question ends the connection, other traffic to its port is
// unaffected.
//
// Each connection uses a descriptor, so the number of open ones is limited. With more ports than that, each has its
// share of the time: one that has not answered by then yields its slot to one that was not asked yet.

package import PortSystem

/// The answer of a port's owner.
package enum StatisticsAnswer: Hashable, Sendable {
    case told(PortStatistics)
    /// It lives, and has not answered in time: it is stopped, or busy with other work than its port.
    case busy
    /// It is gone, does not talk to this process, or does not understand.
    case silent

    /// The statistics that it sent.
    package var statistics: PortStatistics? {
        if case .told(let statistics) = self { statistics } else { nil }
    }
}

/// Questions that are under way.
package struct StatisticsInquiry: ~Copyable {
    /// How many ports are asked at the same time.
    package static let simultaneous = 128
    /// The token of each question.
    private static let token: UInt64 = 1

    /// Connects to a port, without waiting.
    package typealias Connect = (PortAddress) throws(PortError) -> ConnectOutcome

    private let addresses: [PortAddress]
    private let connect: Connect
    private let deadline: MonotonicInstant
    /// The time that each has when others wait for its slot.
    private let share: Duration
    private let epoll: EpollSet
    private var answers: [StatisticsAnswer]
    private var open: [Int: (question: PortQuestion, since: MonotonicInstant)] = [:]
    private var askedCount = 0

    private init(
        _ addresses: [PortAddress], until deadline: MonotonicInstant, connecting connect: @escaping Connect
    ) throws(PortError) {
        self.addresses = addresses
        self.connect = connect
        self.deadline = deadline
        let roundCount = max(1, (addresses.count + Self.simultaneous - 1) / Self.simultaneous)
        share = max(.zero, MonotonicInstant.now.duration(to: deadline)) / roundCount
        answers = Array(repeating: .silent, count: addresses.count)
        do throws(SystemError) {
            epoll = try EpollSet()
        } catch {
            throw PortError(error)
        }
    }

    /// Asks ports for their statistics. Those of ports of this process are read directly.
    ///
    /// - Parameters:
    ///   - addresses: the ports' addresses.
    ///   - deadline: when to give up those that have not answered. Each is asked, even if that is past.
    ///   - connect: how to connect to each.
    /// - Returns: the answers, in the same order.
    /// - Throws: `descriptorLimit`, `systemCallFailed` when no port can be asked.
    package static func ask(
        _ addresses: [PortAddress], until deadline: MonotonicInstant,
        connecting connect: @escaping Connect = { (address) throws(PortError) in
            try ProcessEndpoints.connect(toPath: address.path)
        }
    ) throws(PortError) -> [StatisticsAnswer] {
        var inquiry = try StatisticsInquiry(addresses, until: deadline, connecting: connect)
        while try inquiry.askMore() {
            if !inquiry.hear() { inquiry.giveUpLate() }
        }
        return inquiry.answers
    }

    private var hasUnasked: Bool { askedCount < addresses.count }

    /// - Returns: whether an answer is awaited.
    private mutating func askMore() throws(PortError) -> Bool {
        while hasUnasked, open.count < Self.simultaneous {
            let index = askedCount
            if let own = RightsTable.shared.ownPort(at: addresses[index]) {
                answers[index] = .told(own.statistics)
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
        let header = PacketHeader(kind: .statistics, asks: Self.token)
        switch try PortQuestion.ask(header, over: connect(addresses[index])) {
        case .busy: answers[index] = .busy
        case .dead: break
        case .asked(let question):
            do throws(SystemError) {
                try epoll.add(question.rawValue, .readable, key: UInt64(index))
            } catch {
                throw PortError(error)
            }
            open[index] = (question, .now)
        }
    }

    /// When the next one must yield its slot.
    private var nextEnd: MonotonicInstant {
        guard hasUnasked, let first = open.values.map(\.since).min() else { return deadline }
        return min(deadline, first.advanced(by: share))
    }

    /// - Returns: false when nothing came in time.
    private mutating func hear() -> Bool {
        let reports = epoll.wait(until: nextEnd)
        for report in reports {
            let index = Int(report.key)
            guard let question = open.removeValue(forKey: index)?.question else { continue }
            if case .statistics(let statistics, Self.token)? = (try? question.hear()) ?? nil {
                answers[index] = .told(statistics)
            }
            epoll.remove(question.rawValue)
        }
        return !reports.isEmpty
    }

    /// Gives up those that have had their time.
    private mutating func giveUpLate() {
        let now = MonotonicInstant.now
        for (index, question) in open where now >= deadline || hasUnasked && question.since.advanced(by: share) <= now {
            answers[index] = .busy
            epoll.remove(question.question.rawValue)
            open[index] = nil
        }
    }
}
