// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// What the command line asks for.
struct Options {
    var filter = ""
    var jsonPath: String?
    var chartPath: String?
    var isQuick = false
    var wantsHelp = false

    /// What is wrong with a command line.
    struct Mistake: Error {
        let text: String
    }

    static let help = """
        usage: portbench [--filter TEXT] [--json FILE] [--svg FILE] [--quick]

        Measures ports and run loops beside the bare system calls, CFRunLoop, Dispatch and AsyncStream, in one run.

          --filter TEXT  only the cases whose id has TEXT in it
          --json FILE    writes the results, a list of objects
          --svg FILE     writes a chart of the ratios to the baselines
          --quick        less of everything: under a minute, numbers are rough
          --help         this text

        Smaller is better in every column. The exit status is 64 for a command line that it does not understand.
        """

    init() {}

    /// Reads a command line, without the program's name.
    init(_ arguments: [String]) throws {
        var rest = arguments[...]
        while let option = rest.popFirst() {
            switch option {
            case "--quick": isQuick = true
            case "--help", "-h": wantsHelp = true
            case "--filter": filter = try Self.value(of: option, &rest)
            case "--json": jsonPath = try Self.value(of: option, &rest)
            case "--svg": chartPath = try Self.value(of: option, &rest)
            default: throw Mistake(text: "unknown option \(option)")
            }
        }
    }

    private static func value(of option: String, _ rest: inout ArraySlice<String>) throws -> String {
        guard let value = rest.popFirst() else { throw Mistake(text: "\(option) needs a value") }
        return value
    }
}
