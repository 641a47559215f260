// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A parsed command line.
struct Options {
    var filter = ""
    var jsonPath: String?
    var chartPath: String?
    var smallChartPath: String?
    var pagePath: String?
    /// The section of the page to write.
    var section: String?
    /// A file of an earlier run, whose results replace measuring: what `--json` has written, or a page.
    var earlierPath: String?
    var isQuick = false
    /// How many runs there are; nil for one, in this process, of which all numbers are shown.
    var runs: Int?
    /// How many busy loops run beside each case.
    var beside = 0
    var wantsHelp = false

    /// An error in a command line.
    struct Mistake: Error {
        let text: String
    }

    static let help = """
        usage: portbench [--filter TEXT] [--json FILE] [--svg FILE] [--small-svg FILE] [--page FILE [--section NAME]]
                         [[--quick] [--beside N] | --from FILE]
               portbench --runs N [--filter TEXT] [--json FILE] [--page FILE [--section NAME]] [--quick] [--beside N]

        Measures ports and run loops beside the bare system calls, CFRunLoop, Dispatch and AsyncStream, in one run.

          --filter TEXT   only the cases whose id has TEXT in it
          --json FILE     writes the results, a list of objects
          --svg FILE      writes a chart of the ratios to the baselines
          --small-svg FILE
                          writes a chart of the round trips of busy threads and processes
          --page FILE     writes a table into a page that is there, between the lines
                          <!-- portbench NAME --> and <!-- end of portbench NAME -->
          --section NAME  which such lines: results, unless another name is given
          --quick         less of everything: under a minute, numbers are rough
          --beside N      runs N busy loops, each a process, beside every case: 0, unless a number is given
          --runs N        does all N times, each time in a process of its own, and shows how far the medians of the
                          runs are apart, ours and the bare baselines'
          --from FILE     measures nothing: takes the results that --json has written; for --small-svg also
                          the section of a page, whose name ends with .md
          --help          this text

        Smaller is better in every column. The exit status is 64 for a command line that it does not understand.
        """

    init() {}

    /// Parses a command line, without the program's name.
    init(_ arguments: [String]) throws {
        var rest = arguments[...]
        while let option = rest.popFirst() {
            switch option {
            case "--quick": isQuick = true
            case "--help", "-h": wantsHelp = true
            case "--filter": filter = try Self.value(of: option, &rest)
            case "--json": jsonPath = try Self.value(of: option, &rest)
            case "--svg": chartPath = try Self.value(of: option, &rest)
            case "--small-svg": smallChartPath = try Self.value(of: option, &rest)
            case "--page": pagePath = try Self.value(of: option, &rest)
            case "--section": section = try Self.value(of: option, &rest)
            case "--beside": beside = try Self.number(of: option, in: 0...BusyLoops.most, &rest)
            case "--runs": runs = try Self.number(of: option, in: 1...1_000, &rest)
            case "--from": earlierPath = try Self.value(of: option, &rest)
            default: throw Mistake(text: "unknown option \(option)")
            }
        }
        if isFromPage, smallChartPath == nil || [jsonPath, chartPath, pagePath].contains(where: { $0 != nil }) {
            throw Mistake(text: "--from a page is for --small-svg alone: give it a file that --json has written")
        }
        if section != nil, pagePath == nil, !isFromPage {
            throw Mistake(text: "--section needs --page, the file that has the section")
        }
        if runs != nil, let option = chartPath != nil ? "--svg" : smallChartPath != nil ? "--small-svg" : nil {
            throw Mistake(text: "\(option) draws one run: leave --runs out")
        }
        if earlierPath != nil, let option = isQuick ? "--quick" : beside > 0 ? "--beside" : runs != nil ? "--runs" : nil
        {
            throw Mistake(text: "--from measures nothing: leave \(option) out")
        }
    }

    /// Whether the results are the table of a page.
    var isFromPage: Bool { earlierPath?.hasSuffix(".md") ?? false }

    private static func value(of option: String, _ rest: inout ArraySlice<String>) throws -> String {
        guard let value = rest.popFirst() else { throw Mistake(text: "\(option) needs a value") }
        return value
    }

    private static func number(
        of option: String, in range: ClosedRange<Int>, _ rest: inout ArraySlice<String>
    ) throws -> Int {
        let text = try value(of: option, &rest)
        guard let number = Int(text), range.contains(number) else {
            throw Mistake(
                text: "\(option) needs a number from \(range.lowerBound) to \(range.upperBound), not \(text)")
        }
        return number
    }
}
