// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation

/// The program: parses its options, measures, and reports.
enum Program {
    static func run(_ arguments: [String]) throws {
        if arguments.first == Child.option { return try Child.run(Array(arguments.dropFirst())) }
        let options = try Options(arguments)
        if options.wantsHelp { return print(Options.help) }
        if options.isFromPage, let page = options.earlierPath, let path = options.smallChartPath {
            let section = try PageSection(options.section ?? "results", of: page, isRead: true)
            return try SmallChart(section.rows()).write(to: path)
        }
        // Before anything is measured.
        let section = try options.pagePath.map { try PageSection(options.section ?? "results", of: $0) }
        if let number = options.runs { return try report(spreads(options, number), options, section) }
        let (results, failures) = try options.earlierPath.map { (try earlier($0, options), []) } ?? measure(options)
        if let path = options.jsonPath { try JSONReport.write(results, to: path) }
        if let path = options.chartPath { try Chart(results).write(to: path) }
        if !failures.isEmpty {
            let page = options.pagePath.map { "; \($0) is as it was" } ?? ""
            throw BenchmarkFailure("failed: \(failures.joined(separator: ", "))\(page)")
        }
        try section?.write(MarkdownTable.text(results), of: run(of: results))
        if let path = options.smallChartPath { try SmallChart(MarkdownTable.rows(of: results)).write(to: path) }
    }

    /// Measures all cases, and returns their results and the ids of those that failed.
    private static func measure(_ options: Options) throws -> ([CaseResult], failures: [String]) {
        let cases = try cases(options)
        let clock = ContinuousClock()
        let start = clock.now
        var run = Run(isQuick: options.isQuick, beside: options.beside)
        if let words = run.besideWords { print("with \(words)") }
        print(Table.head)
        var results: [CaseResult] = []
        var failures: [String] = []
        for `case` in cases {
            do {
                let loops = try BusyLoops(options.beside)
                defer { loops.end() }
                for result in try `case`.measure(Settings(isQuick: options.isQuick)) {
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
        run.caseCount = Set(results.map(\.case)).count
        run.seconds = Int(start.duration(to: clock.now).components.seconds)
        print("\(run.caseCount) cases in \(run.seconds) s")
        for index in results.indices { results[index].run = run }
        return (results, failures)
    }

    /// Measures all cases several times.
    private static func spreads(_ options: Options, _ number: Int) throws -> [Spread] {
        _ = try cases(options)
        let clock = ContinuousClock()
        let start = clock.now
        var run = Run(isQuick: options.isQuick, beside: options.beside)
        let runs = try SeveralRuns.measure(options, number)
        run.runs = number
        run.caseCount = Set(runs.joined().map(\.case)).count
        run.seconds = Int(start.duration(to: clock.now).components.seconds)
        return Spread.all(of: runs, run)
    }

    private static func report(_ spreads: [Spread], _ options: Options, _ section: PageSection?) throws {
        guard let run = spreads.first?.run else { throw BenchmarkFailure("no case could be measured here") }
        print("\(run.runs ?? 1) runs\(run.besideWords.map { ", with \($0)" } ?? "")")
        print(SpreadTable.head)
        for line in spreads.flatMap(SpreadTable.lines) { print(line) }
        print("\(run.caseCount) cases in \(run.seconds) s")
        if let path = options.jsonPath { try JSONReport.write(spreads, to: path) }
        try section?.write(SpreadTable.markdown(spreads), of: run)
    }

    private static func cases(_ options: Options) throws -> [Case] {
        let cases = Case.all.filter { options.filter.isEmpty || $0.id.contains(options.filter) }
        if cases.isEmpty { throw noSuchCase(options) }
        return cases
    }

    /// The results of an earlier run.
    private static func earlier(_ path: String, _ options: Options) throws -> [CaseResult] {
        let results = try JSONReport.read(path).filter { options.filter.isEmpty || $0.case.contains(options.filter) }
        if results.isEmpty { throw noSuchCase(options) }
        if let words = results[0].run?.besideWords { print("with \(words)") }
        print(Table.head)
        for line in results.flatMap(Table.lines) { print(line) }
        return results
    }

    private static func noSuchCase(_ options: Options) -> Options.Mistake {
        let origin = options.earlierPath.map { " of \($0)" } ?? ""
        return Options.Mistake(
            text: "no case\(origin) has \(options.filter.isEmpty ? "results" : "\(options.filter) in its id")")
    }

    /// The one run that all results come from.
    private static func run(of results: [CaseResult]) throws -> Run {
        if results.isEmpty { throw BenchmarkFailure("no case could be measured here; the page is as it was") }
        guard let run = results[0].run, results.allSatisfy({ $0.run == run }) else {
            throw BenchmarkFailure(
                "a page needs results of one run, and what that was: give --from the file of one --json")
        }
        return run
    }

    static func complain(_ text: String) {
        FileHandle.standardError.write(Data("portbench: \(text)\n".utf8))
    }
}
