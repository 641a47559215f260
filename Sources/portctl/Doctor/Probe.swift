// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer
import PortCLibrary

/// One thing that `portctl doctor` tries, with the cost of its absence and the remedy.
struct Probe: Sendable {
    let subject: String
    /// The first kernel version that has it.
    var since: String?
    /// What programs do without it.
    var cost = ""
    /// The remedy; nil for the one that applies to every call.
    var remedy: String?
    /// What was found; when it throws, the system refuses.
    let body: @Sendable () throws -> (state: ProbeResult.State, found: String)

    /// A probe that makes a call, which works unless it throws.
    static func call(
        _ subject: String, since: String? = nil, cost: String, remedy: String? = nil,
        body: @escaping @Sendable () throws -> Void
    ) -> Probe {
        Probe(subject: subject, since: since, cost: cost, remedy: remedy) {
            try body()
            return (.works, "")
        }
    }

    /// Runs the probe.
    func make() -> ProbeResult {
        do {
            let (state, found) = try body()
            let isLow = state == .low
            return ProbeResult(
                subject: subject, state: state, found: found, cost: isLow ? cost : nil, remedy: isLow ? remedy : nil)
        } catch {
            let code = (error as? SystemError)?.code ?? (error as? PortError)?.systemError?.code
            return ProbeResult(
                subject: subject, state: .refused, found: "\(error)", cost: cost,
                remedy: Self.remedyOfLimit(code) ?? remedy ?? generalRemedy(code))
        }
    }

    private static func remedyOfLimit(_ code: CInt?) -> String? {
        switch code {
        case EMFILE, ENFILE: "No descriptor is left: raise LimitNOFILE= of the unit, or ulimit -n."
        case ENOMEM, ENOBUFS:
            "The kernel has no memory left at the moment: raise the memory limit of the container or unit."
        default: nil
        }
    }

    private func generalRemedy(_ code: CInt?) -> String {
        let filter =
            "allow it in the seccomp profile of the container, or in SystemCallFilter= of the unit"
        if code == EPERM || code == EACCES { return "A filter of system calls forbids it: \(filter)." }
        guard let since else { return "The system says why: see what was found." }
        return "It needs \(since). Where the kernel is that new, a filter of system calls hides it: \(filter)."
    }
}

/// The result of a probe of `portctl doctor`.
struct ProbeResult: Equatable {
    enum State: String {
        case works
        /// The system does not support it, or forbids it.
        case refused
        /// It is available, but less of it than programs may need.
        case low
        /// For information only.
        case fact
    }

    /// What was tried.
    let subject: String
    let state: State
    /// The result: a number, or the system's error.
    let found: String
    /// What programs do without it, and the remedy; nil where nothing is missing.
    var cost: String?
    var remedy: String?

    static let columns: [Table.Column] = [
        .init(title: "WHAT"), .init(title: "STATE"), .init(title: "FOUND", narrowest: 20),
    ]

    var cells: [String] { [subject, state == .fact ? "" : state.rawValue, found] }

    /// The advice that the table has no room for, as a paragraph; nil where nothing is missing.
    var advice: String? {
        cost.map { "\(subject): \($0)\(remedy.map { " " + $0 } ?? "")" }
    }

    var style: Style {
        switch state {
        case .works, .fact: .plain
        case .low: .suspicious
        case .refused: .alarming
        }
    }

    var json: JSONValue {
        .object([
            ("what", .text(subject)), ("state", .text(state.rawValue)), ("found", .text(found)),
            ("cost", cost.map { .text($0) } ?? .null), ("remedy", remedy.map { .text($0) } ?? .null),
        ])
    }
}
