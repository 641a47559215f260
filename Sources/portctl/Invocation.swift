// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// What a command line asks for.
struct Invocation: Equatable {
    /// What to do.
    enum Command: Equatable {
        case list
        case send(name: String, id: Int32, body: Body)
        case request(name: String, id: Int32, body: Body)
        case serve(name: String)
        case help
    }

    /// What a message carries.
    enum Body: Equatable {
        case text(String)
        case standardInput
    }

    var command: Command
    /// The directory of names; nil for the user's.
    var directory: String?
    var sendLimit = Duration.seconds(10)
    var replyLimit = Duration.seconds(10)
}

/// A command line that asks for nothing that can be done.
struct UsageError: Error {
    let sentence: String
}

extension Invocation {
    static let help = """
        usage: portctl list                      each registered name and the process that holds it
               portctl send NAME ID [TEXT]       sends a message that expects no reply
               portctl request NAME ID [TEXT]    sends a message and writes the bytes of its reply
               portctl serve NAME                answers each request with its own bytes and tells what came;
                                                 a message with the id 0 ends it
               portctl help                      this text, as do -h and --help

        Options, before or after the other arguments:
          --directory DIR    the directory of names, an absolute path; the user's unless said otherwise
          --send-limit S     how many seconds to wait for room in the port's queue (10)
          --reply-limit S    how many seconds to wait for the reply (10)
          --                 what follows is no option

        ID is a number from -2147483648 to 2147483647. TEXT is empty unless said otherwise; - is standard input.
        Exit status: 0 done, 1 a port or a system call failed, 2 wrong arguments.

        """

    /// Reads the arguments, without the program's name.
    init(_ arguments: [String]) throws(UsageError) {
        self.init(command: .help)
        var words: [String] = []
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--directory": directory = try Self.value(of: argument, &rest)
            case "--send-limit": sendLimit = try Self.seconds(of: argument, &rest)
            case "--reply-limit": replyLimit = try Self.seconds(of: argument, &rest)
            case "-h", "--help":
                command = .help
                return
            case "--":
                words += rest
                rest = []
            case _ where argument.hasPrefix("--"):
                throw UsageError(sentence: "There is no option \(argument).")
            default: words.append(argument)
            }
        }
        command = try Self.command(words)
    }

    private static func command(_ words: [String]) throws(UsageError) -> Command {
        let arguments = words.dropFirst()
        switch (words.first, arguments.count) {
        case ("list", 0): return .list
        case ("help", 0): return .help
        case ("serve", 1): return .serve(name: arguments[1])
        case ("send", 2...3):
            return .send(name: arguments[1], id: try id(arguments[2]), body: body(arguments.dropFirst(2).first))
        case ("request", 2...3):
            return .request(name: arguments[1], id: try id(arguments[2]), body: body(arguments.dropFirst(2).first))
        case (nil, _): throw UsageError(sentence: "What shall be done?")
        case ("list", _), ("help", _), ("serve", _), ("send", _), ("request", _):
            throw UsageError(sentence: "\(words[0]) has too few or too many arguments.")
        default: throw UsageError(sentence: "There is no command \(words[0]).")
        }
    }

    private static func body(_ text: String?) -> Body {
        text == "-" ? .standardInput : .text(text ?? "")
    }

    private static func id(_ text: String) throws(UsageError) -> Int32 {
        guard let id = Int32(text) else {
            throw UsageError(sentence: "\(text) is no message id: a number from \(Int32.min) to \(Int32.max).")
        }
        return id
    }

    private static func value(of option: String, _ rest: inout ArraySlice<String>) throws(UsageError) -> String {
        guard let value = rest.popFirst() else { throw UsageError(sentence: "\(option) needs a value.") }
        return value
    }

    private static func seconds(of option: String, _ rest: inout ArraySlice<String>) throws(UsageError) -> Duration {
        let text = try value(of: option, &rest)
        guard let seconds = Double(text), (0...1e9).contains(seconds) else {
            throw UsageError(sentence: "\(option) needs a number of seconds from 0 to 1000000000, not \(text).")
        }
        return .seconds(seconds)
    }
}
