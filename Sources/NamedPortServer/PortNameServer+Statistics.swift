// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
public import MessagePort
import PortSystem

extension PortNameServer {
    /// The names that are held now, in alphabetical order, and what their ports have counted. All owners are asked at
    /// once.
    ///
    /// Nobody is kept waiting by one that is stopped or busy: see ``/MessagePort/SendRight/statistics(within:)``.
    ///
    /// - Parameter limit: how long to wait for the answers of all together.
    /// - Returns: each with its owner, and its statistics; nil for one that did not answer.
    /// - Throws: as ``list()``.
    @available(*, noasync, message: "It blocks the thread.")
    public func listStatistics(within limit: Duration) throws(PortError)
        -> [(registration: Registration, statistics: PortStatistics?)]
    {
        try listAnswers(within: limit).map { ($0.registration, $0.answer.statistics) }
    }

    /// As above, with what is known of those that did not answer.
    package func listAnswers(within limit: Duration) throws(PortError)
        -> [(registration: Registration, answer: StatisticsAnswer)]
    {
        let deadline = MonotonicInstant.after(limit)
        let names = try openDirectory().names
        let entries = try NameEntry.all(in: names)
        if entries.isEmpty, !names.isCurrent { throw PortError(SystemError(ENOENT), subject: .path(names.path)) }
        let sorted = entries.values.sorted { $0.registration.name < $1.registration.name }
        let answers = try StatisticsInquiry.ask(sorted.map { PortAddress(path: $0.socketPath) }, until: deadline)
        return zip(sorted, answers).map { ($0.registration, $1) }
    }
}

extension PortNameServer {
    /// Watches the messages of the port that has a name.
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - byteLimit: how many bytes of each message.
    ///   - deadline: when to give up.
    /// - Returns: the watch, which has begun.
    /// - Throws: `nameUnknown`; as `PortWatch.init`.
    package func watch(
        _ name: String, byteLimit: Int, until deadline: MonotonicInstant
    ) throws(PortError) -> PortWatch {
        let portName = try PortName(name)
        guard let record = try NameRecord.read(of: portName, in: try openDirectory().names) else {
            throw PortError(.nameUnknown, subject: .name(name))
        }
        do throws(PortError) {
            return try PortWatch(PortAddress(path: record.socketPath), byteLimit: byteLimit, until: deadline)
        } catch {
            // A record may be left by an owner that was killed.
            throw error.code == .deadName ? PortError(.nameUnknown, subject: .name(name)) : error.at(name: name)
        }
    }
}
