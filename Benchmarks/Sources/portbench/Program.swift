// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation

/// What the program does, once it knows what it was asked for.
enum Program {
    static func run(_ arguments: [String]) throws {
        if arguments.first == Child.option { return try Child.run(Array(arguments.dropFirst())) }
        let options = try Options(arguments)
        if options.wantsHelp { return print(Options.help) }
        let cases = Case.all.filter { options.filter.isEmpty || $0.id.contains(options.filter) }
        if cases.isEmpty { throw Options.Mistake(text: "no case has \(options.filter) in its id") }
        let (results, failures) = measure(cases, Settings(isQuick: options.isQuick))
        if let path = options.jsonPath { try JSONReport.write(results, to: path) }
        if let path = options.chartPath { try Chart(results).write(to: path) }
        if !failures.isEmpty { throw BenchmarkFailure("failed: \(failures.joined(separator: ", "))") }
    }

    /// Measures all cases, and gives what they showed and the ids of those that failed.
    private static func measure(_ cases: [Case], _ settings: Settings) -> ([CaseResult], failures: [String]) {
        let clock = ContinuousClock()
        let start = clock.now
        print(Table.head)
        var results: [CaseResult] = []
        var failures: [String] = []
        for `case` in cases {
            do {
                for result in try `case`.measure(settings) {
                    for line in Table.lines(result) { print(line) }
                    results.append(result)
                }
            } catch let reason as NotAvailable {
                print("\(`case`.id): not available: \(reason)")
            } catch {
                print("\(`case`.id): failed: \(error)")
                failures.append(`case`.id)
            }
        }
        print("\(cases.count) cases in \(start.duration(to: clock.now).components.seconds) s")
        return (results, failures)
    }

    static func complain(_ text: String) {
        FileHandle.standardError.write(Data("portbench: \(text)\n".utf8))
    }
}
