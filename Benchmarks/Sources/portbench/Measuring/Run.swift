// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import Foundation

/// Where and how results were measured.
struct Run: Codable, Equatable {
    /// The model, or the architecture where the system does not name it.
    var processor: String
    /// How many processors the program could use.
    var processorCount: Int
    /// How many the machine has.
    var machineProcessorCount: Int
    /// The kernel's release.
    var kernel: String
    /// The environment variables that ports and loops read, if set.
    var settings: [String: String]
    /// The policy and the priority when it was a real-time one, such as `SCHED_RR 1`.
    var scheduling: String?
    /// Whether a filter of system calls was in force, as in most containers: each call takes longer then.
    var isFiltered: Bool
    /// How many runs it stands for, each in a process of its own; nil for one.
    var runs: Int?
    var isQuick: Bool
    /// How many busy loops ran beside each case; nil in results from before they were counted.
    var beside: Int?
    /// Whether the program was compiled without optimization: then its times say nothing.
    var isDebug: Bool
    /// The load average of the minute before the run: near zero on a machine that is otherwise idle.
    var load: Double
    var caseCount = 0
    var seconds = 0

    private static let variables = ["PORT_RING", "PORT_WAIT"]

    /// A run that begins now.
    init(isQuick: Bool, beside: Int) {
        self.isQuick = isQuick
        self.beside = beside
        var loads = [0.0]
        load = getloadavg(&loads, 1) == 1 ? loads[0] : 0
        var name = utsname()
        uname(&name)
        kernel = Self.text(&name.release)
        processor = Self.model ?? Self.text(&name.machine)
        machineProcessorCount = max(1, ProcessInfo.processInfo.processorCount)
        let usable = Int(bare_processor_count())
        processorCount = usable > 0 ? usable : machineProcessorCount
        settings = ProcessInfo.processInfo.environment.filter { Self.variables.contains($0.key) }
        scheduling = Self.scheduling
        isFiltered = Self.isFiltered
        isDebug = _isDebugAssertConfiguration()
    }

    /// The sentence before the results on a page.
    var sentence: String {
        let some = processorCount < machineProcessorCount ? " of \(machineProcessorCount)" : ""
        let plural = max(processorCount, machineProcessorCount) == 1 ? "" : "s"
        var text = "\(runs.map(String.init) ?? "One")\(isQuick ? " quick" : "") run\((runs ?? 1) == 1 ? "" : "s")"
        text += "\(isDebug ? " of a debug build" : "")\(runs == nil ? "" : ", each in a process of its own,") on "
        text += "\(processorCount)\(some) processor\(plural) (\(processor), Linux \(kernel))"
        for (name, value) in settings.sorted(by: { $0.key < $1.key }) { text += ", with `\(name)=\(value)`" }
        if let besideWords { text += ", with \(besideWords)" }
        if let scheduling { text += ", at real-time priority (`\(scheduling)`)" }
        if isFiltered { text += ", under a filter of system calls" }
        text += ": \(caseCount) case\(caseCount == 1 ? "" : "s") in \(seconds) s"
        return text + ", with a load average of \(load.figure) before it."
    }

    /// What ran beside each case, in words; nil when nothing did.
    var besideWords: String? {
        guard let beside, beside > 0 else { return nil }
        return "\(beside) busy loop\(beside == 1 ? "" : "s") beside each case"
    }

    private static var model: String? {
        guard let text = try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix("model name") }),
            let colon = line.firstIndex(of: ":")
        else { return nil }
        return line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
    }

    /// Whether a filter of system calls is in force.
    static var isFiltered: Bool {
        let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        return status?.contains("Seccomp:\t2\n") ?? false
    }

    private static var scheduling: String? {
        var parameters = sched_param()
        guard sched_getparam(0, &parameters) == 0 else { return nil }
        // The policy may be combined with the flag that children do not inherit it.
        switch sched_getscheduler(0) & 0xFF {
        case SCHED_FIFO: return "SCHED_FIFO \(parameters.sched_priority)"
        case SCHED_RR: return "SCHED_RR \(parameters.sched_priority)"
        default: return nil
        }
    }

    /// A field of the result of `uname`.
    private static func text<Field>(_ field: inout Field) -> String {
        withUnsafeBytes(of: &field) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}
