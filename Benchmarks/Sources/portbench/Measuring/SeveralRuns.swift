// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation

/// Runs of this program one after the other, each in a process of its own: where the kernel puts memory and threads,
/// and what a wait strategy has learnt, lasts as long as a process, so one run does not show how far runs differ.
enum SeveralRuns {
    /// Measures the cases that the options choose, and returns the results of each run.
    static func measure(_ options: Options, _ number: Int) throws -> [[CaseResult]] {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("portbench-\(getpid())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let report = directory.appendingPathComponent("report.json").path
        var arguments = ["--json", report, "--beside", "\(options.beside)"]
        if options.isQuick { arguments.append("--quick") }
        if !options.filter.isEmpty { arguments += ["--filter", options.filter] }
        return try (1...number).map { run in
            print("run \(run) of \(number)")
            let child = try BareChild.spawn(Child.arguments(.run, arguments))
            guard BareChild.wait(for: child) == 0 else {
                throw BenchmarkFailure("run \(run) of \(number) failed: the reason is above")
            }
            return try JSONReport.read(report)
        }
    }
}
