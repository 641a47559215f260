// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import TestSupport
import Testing

@Suite("CheckIn: the transcript", .leakCheck)
struct CheckInTranscriptTests {
    @Test("the worker of acts 1 and 2 is another thread, that of act 3 another process")
    func workers() async throws {
        try await withScratchDirectory { scratch in
            let result = try await run("checkin", ["Package.swift"], namesIn: scratch)
            let acts = acts(of: result.output)
            try #require(acts.count == 3)
            for (number, act) in acts.enumerated() {
                let sides = act.matches(of: /(main|worker) \(process ([0-9]+), thread ([0-9]+)\)/)
                let main = Set(sides.filter { $0.1 == "main" }.map { "\($0.2) \($0.3)" })
                let worker = Set(sides.filter { $0.1 == "worker" }.map { "\($0.2) \($0.3)" })
                try #require(main.count == 1 && worker.count == 1)
                #expect(main != worker)
                let processes = Set(sides.map(\.2))
                #expect(processes.count == (number == 2 ? 2 : 1))
            }
        }
    }
}

/// The three acts of a transcript.
func acts(of transcript: String) -> [String] {
    transcript.split(separator: "\n", omittingEmptySubsequences: false).reduce(into: []) { acts, line in
        if line.hasPrefix("act ") { acts.append("") }
        if !acts.isEmpty { acts[acts.count - 1] += line + "\n" }
    }
}

/// What an act prints after its worker has ended: the counts.
func table(of act: String) -> [Substring] {
    let lines = act.split(separator: "\n")
    guard let end = lines.lastIndex(where: { $0.hasPrefix("  main ") && $0.contains(" has ended") }) else { return [] }
    return Array(lines[(end + 1)...])
}
