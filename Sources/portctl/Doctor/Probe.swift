// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer
import PortCLibrary

/// One thing that `portctl doctor` tries, with the cost of its absence and the remedy.
struct Probe: Sendable {
    /// The outcome; when the probe throws, the system refuses.
    enum Outcome {
        case works(String)
        case low(String)
        case fact(String)
    }

    let subject: String
    /// The first kernel version that has it.
    var since: String?
    /// What programs do without it.
    var cost = ""
    /// The remedy; nil for the one that applies to every call.
    var remedy: String?
    let body: @Sendable () throws -> Outcome

    /// Runs the probe.
    func make() -> Finding {
        do {
            switch try body() {
            case .works(let found): return Finding(subject: subject, state: .works, found: found)
            case .fact(let found): return Finding(subject: subject, state: .fact, found: found)
            case .low(let found):
                return Finding(subject: subject, state: .low, found: found, cost: cost, remedy: remedy)
            }
        } catch {
            let code = (error as? SystemError)?.code ?? (error as? PortError)?.systemError?.code
            return Finding(
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
