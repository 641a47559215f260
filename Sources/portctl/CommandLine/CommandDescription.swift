// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The commands of portctl.
enum Command: String, CaseIterable {
    case list, info, send, request, serve, watch, activate, handover, wait, trace, bench, doctor, completion, help
}

/// Everything that is known of a command. Parsing, help, completion, suggestions and the man page are made of this.
struct CommandDescription {
    /// Whether a command runs a program, whose words follow `--`.
    enum ProgramArgument: Equatable {
        case none, optional, required
        /// A program in place of the arguments.
        case alternative
    }

    let command: Command
    let summary: String
    var arguments: [Argument] = []
    var program = ProgramArgument.none
    var options: [Option] = []
    /// Further notes, a paragraph each.
    var notes: [String] = []

    var name: String { command.rawValue }

    /// The command's options, with those that every command has.
    var allOptions: [Option] { options + Option.common }

    /// The usage lines without the options: `send NAME ID [DATA]`.
    var synopses: [String] {
        let words = [name] + arguments.map(\.shown)
        let line = words.joined(separator: " ")
        return switch program {
        case .none: [line]
        case .optional: ["\(line) [-- COMMAND ...]"]
        case .required: ["\(line) -- COMMAND ..."]
        case .alternative: [line, "\(name) -- COMMAND ..."]
        }
    }
}

extension Command {
    var description: CommandDescription {
        // The table has every command: a test says so.
        CommandDescription.table.first { $0.command == self } ?? CommandDescription(command: self, summary: "")
    }
}

extension CommandDescription {
    /// All commands, in the order of the help.
    static let table: [CommandDescription] = [
        list, info, send, request, serve, watch, activate, handover, wait, trace, bench, doctor, completion, help,
    ]

    private static let name = Argument(placeholder: "NAME", kind: .portName)
    private static let body = [
        name, Argument(placeholder: "ID", kind: .messageID),
        Argument(placeholder: "DATA", kind: .data, isOptional: true),
    ]
    private static let file = Option.option("--file", "f", "F", .file, nil, "sends what is in the file")
    private static let bodyNote =
        "ID is a number from \(Int32.min) to \(Int32.max). DATA is empty unless said otherwise; - is standard input."

    private static let list = CommandDescription(
        command: .list, summary: "shows the names that are held, their owners, and what their ports have counted",
        options: [
            .flag("--watch", "w", "shows it again and again, in place on a terminal"),
            .option("--interval", "i", "T", .duration, "1s", "how long to wait in between"),
            .option("--count", "n", "N", .count, nil, "ends after this many times"),
            .option("--timeout", "t", "T", .duration, "500ms", "how long to wait for the owners' answers"),
            .flag("--names", nil, "writes names only, one in a line"),
            .flag("--all", "a", "shows also the names by which processes let themselves be traced, trace.PID"), .json,
        ],
        notes: [
            "PEERS counts connections of other processes, QUEUE the messages that wait and how many may, MESSAGES and "
                + "BYTES what has come, DROPS what the queue has dropped. All owners are asked at once. One that lives "
                + "and does not answer in time is busy: it is stopped, or its run loop has something else to do. One that "
                + "reports nothing has - in these columns. A name that is waiting is held by portctl activate, which "
                + "starts the owner when a client connects."
        ])

    private static let info = CommandDescription(
        command: .info, summary: "shows all that is known of one name", arguments: [name],
        options: [.option("--timeout", "t", "T", .duration, "500ms", "how long to wait for the owner's answer"), .json])

    private static let send = CommandDescription(
        command: .send, summary: "sends a message that expects no reply", arguments: body,
        options: [
            file, .option("--timeout", "t", "T", .duration, "10s", "how long to wait for room in the port's queue"),
        ],
        notes: [
            bodyNote,
            "A port drops a message that is longer than its owner allows, and its sender gets no error. One of more "
                + "than \(Invocation.silentLimit) bytes, the standard limit, is not sent, and the status is 1: request "
                + "reports the outcome.",
        ])

    private static let request = CommandDescription(
        command: .request, summary: "sends a message and writes its reply", arguments: body,
        options: [
            file, .option("--timeout", "t", "T", .duration, "10s", "how long to wait for the reply"),
            .option("--send-timeout", nil, "T", .duration, "10s", "how long to wait for room in the port's queue"),
            .flag("--hex", "x", "writes the reply in hexadecimal digits"),
            .flag("--raw", "r", "writes the bytes of the reply as they are, also on a terminal"),
        ],
        notes: [
            bodyNote,
            "On a terminal a reply is written as text when it is text, and in hexadecimal digits otherwise. Elsewhere "
                + "its bytes are written as they are.",
        ])

    private static let serve = CommandDescription(
        command: .serve, summary: "answers each request with its own bytes, or with what a command makes of them",
        arguments: [name], program: .optional,
        options: [.flag("--quiet", "q", "does not print what came")],
        notes: [
            "With COMMAND, it is run for each message, one after the other, with the bytes on its standard input, and in its environment "
                + "PORT_MESSAGE_ID and PORT_SENDER, the process that sent it. What it writes is the reply; if it ends "
                + "with another status than 0, that is the code of an error reply.",
            "A message with the id 0 ends it. When portctl activate, or systemd, has started it, it takes over their socket. "
                + "It lets itself be watched and traced.",
        ])

    private static let watch = CommandDescription(
        command: .watch, summary: "follows the messages of a port whose owner lets itself be watched",
        arguments: [name],
        options: [
            .option("--bytes", "b", "SIZE", .size, "64", "how many bytes of each message to show"),
            .option("--count", "n", "N", .count, nil, "ends after this many messages"),
            .option("--timeout", "t", "T", .duration, "10s", "how long to wait for the owner's consent"), .json,
        ],
        notes: [
            "The owner agrees by MachPort.setAllowsWatching(true). Messages are shown as they are taken from the queue. "
                + "What finds no room on the way is left out and counted: a slow watcher never slows the service."
        ])

    private static let activate = CommandDescription(
        command: .activate, summary: "holds a name, starts a command when the first client comes, and hands it over",
        arguments: [name], program: .required,
        options: [.flag("--once", nil, "ends with the command, and with its status")],
        notes: [
            "The command checks in (PortNameServer.checkIn, LocalMessagePort(checkingInAs:)). When it has ended, the next "
                + "client starts it again. It is not started more than 5 times in 10 seconds.",
            "A signal ends the command with SIGTERM, then this one; a second signal kills the command.",
        ])

    private static let handover = CommandDescription(
        command: .handover, summary: "starts a command, and has the owner of a name hand its port over to it",
        arguments: [name], program: .required,
        options: [
            .option(
                "--timeout", "t", "T", .duration, "10s",
                "how long to wait for the command to check in, and then for the owner")
        ],
        notes: [
            "The owner agrees by LocalMessagePort.setAllowsHandOver(true), the command takes over by "
                + "LocalMessagePort(takingOverFrom:); portctl serve does both. Clients notice nothing: their connections, the "
                + "queue and the name go along.",
            "The command goes on when this has ended, with status 0. After an error it is ended, and the owner goes on.",
        ])

    private static let wait = CommandDescription(
        command: .wait, summary: "waits until a live port has a name", arguments: [name],
        options: [.option("--timeout", "t", "T", .duration, "10s", "how long to wait")])

    private static let trace = CommandDescription(
        command: .trace, summary: "writes what the run loops of a process do, for Perfetto",
        arguments: [Argument(placeholder: "PID", kind: .processID)], program: .alternative,
        options: [
            .option("--output", "o", "F", .file, "trace.json", "where to write the trace; - is standard output"),
            .option("--duration", "d", "T", .duration, "5s", "how long to record a process"),
        ],
        notes: [
            "The process agrees by TraceService.start(), which also records a program that this command has started, until "
                + "it exits or a signal ends it. Open the file at https://ui.perfetto.dev.",
            "Ctrl-C ends the recording of a process, and what it was is written. A command gets the signals itself.",
        ])

    private static let bench = CommandDescription(
        command: .bench, summary: "checks that ports work on this machine, and how fast, in about ten seconds",
        options: [.flag("--quick", nil, "takes about one second"), .json])

    private static let doctor = CommandDescription(
        command: .doctor, summary: "shows what this system allows and refuses, what that costs, and what helps",
        options: [.json],
        notes: [
            "Each line is tried now, in this process. The exit status is 1 when something is refused: programs run all the "
                + "same, slower or without what is named. Run it where the program runs: in its container, its unit, as its user."
        ])

    private static let completion = CommandDescription(
        command: .completion, summary: "writes a completion script for a shell",
        arguments: [Argument(placeholder: "SHELL", kind: .shell)], program: .optional,
        notes: [
            "bash: eval \"$(portctl completion bash)\"; zsh: the same, after compinit; "
                + "fish: portctl completion fish | source.",
            "The script asks portctl what may stand where: with a command line of portctl in place of COMMAND, "
                + "completion writes what its last word may be.",
        ])

    private static let help = CommandDescription(
        command: .help, summary: "shows what there is, or the help of one command",
        arguments: [Argument(placeholder: "COMMAND", kind: .command, isOptional: true)],
        options: [.flag("--man", nil, "writes the manual page, portctl(1)")])
}
