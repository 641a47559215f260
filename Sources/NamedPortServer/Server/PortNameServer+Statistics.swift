// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
public import MessagePort
import PortSystem

extension PortNameServer {
    /// The names that are held now, in alphabetical order, and their ports' statistics. All owners are asked at once.
    ///
    /// An owner that is stopped or busy does not delay the others: see ``/MessagePort/SendRight/statistics(within:)``.
    /// Only ports whose sockets are in the directory are asked: the path in a record may lead to a file system that
    /// does not answer.
    ///
    /// - Parameter limit: how long to wait for all answers together.
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
        let directory = try openDirectory()
        let names = directory.names
        let entries = try NameEntry.all(in: names)
        if entries.isEmpty, !names.isCurrent { throw PortError(SystemError(ENOENT), subject: .path(names.path)) }
        let sorted = entries.values.sorted { $0.registration.name < $1.registration.name }
        let declared = (try? directory.declared(makes: false)) ?? nil
        let addresses = sorted.map { PortAddress(path: $0.socketPath) }
        let answers = try StatisticsInquiry.ask(addresses, until: deadline) { (address) throws(PortError) in
            try Self.connect(to: address, in: ["sockets": directory.sockets, "declared": declared])
        }
        return zip(sorted, answers).map { ($0.registration, $1) }
    }

    /// Connects to a socket in a part of the directory, by the last two names of its path: another process may know the
    /// directory by another path. A socket elsewhere counts as dead.
    private static func connect(
        to address: PortAddress, in parts: [String: TrustedDirectory?]
    ) throws(PortError) -> ConnectOutcome {
        let names = address.path.utf8.split(separator: UInt8(ascii: "/")).suffix(2).map {
            String(decoding: $0, as: UTF8.self)
        }
        guard names.count == 2, let directory = parts[names[0]] ?? nil else { return .dead }
        return try ProcessEndpoints.connect(to: names[1], in: directory)
    }
}

extension PortNameServer {
    /// Watches the messages of the port that has a name.
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - byteLimit: how many bytes of each message.
    ///   - deadline: when to give up.
    /// - Returns: the watch, already begun.
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
