// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

extension CommandDescription {
    private static let name = Argument(placeholder: "NAME", kind: .portName)

    static let watch = CommandDescription(
        command: .watch, summary: "follows the messages of a port whose owner lets itself be watched",
        arguments: [name],
        options: [
            .option("--bytes", "b", "SIZE", .size, "64", "how many bytes of each message to show"),
            .option("--count", "n", "N", .count, summary: "ends after so many messages"),
            .option("--timeout", "t", "T", .duration, "10s", "how long to wait for the owner's consent"), .json,
        ],
        notes: [
            "The owner agrees by MachPort.setAllowsWatching(true). Messages are shown as they are taken from the queue. "
                + "What finds no room on the way is left out and counted: a slow watcher never slows the service."
        ])

    static let activate = CommandDescription(
        command: .activate, summary: "holds a name, starts a command when the first client comes, and hands it over",
        arguments: [name], program: .required,
        options: [.flag("--once", nil, "ends with the command, and with its status")],
        notes: [
            "The command checks in (PortNameServer.checkIn, LocalMessagePort(checkingInAs:)). When it has ended, the next "
                + "client starts it again. It is not started more than 5 times in 10 seconds.",
            "A signal ends the command with SIGTERM, then this one; a second signal kills the command.",
        ])

    static let wait = CommandDescription(
        command: .wait, summary: "waits until a live port has a name", arguments: [name],
        options: [.option("--timeout", "t", "T", .duration, "10s", "how long to wait")])

    static let trace = CommandDescription(
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

    static let bench = CommandDescription(
        command: .bench, summary: "checks that ports work on this machine, and how fast, in about ten seconds",
        options: [.flag("--quick", nil, "takes about one second"), .json])

    static let doctor = CommandDescription(
        command: .doctor, summary: "tells what this system allows and refuses, what that costs, and what helps",
        options: [.json],
        notes: [
            "Each line is tried now, in this process. The exit status is 1 when something is refused: programs run all the "
                + "same, slower or without what is named. Run it where the program runs: in its container, its unit, as its user."
        ])

    static let completion = CommandDescription(
        command: .completion, summary: "writes a completion script for a shell",
        arguments: [Argument(placeholder: "SHELL", kind: .shell)], program: .optional,
        notes: [
            "bash: eval \"$(portctl completion bash)\"; zsh: the same, after compinit; "
                + "fish: portctl completion fish | source.",
            "The script asks portctl what may stand where: with a command line of portctl in place of COMMAND, "
                + "completion writes what its last word may be.",
        ])

    static let help = CommandDescription(
        command: .help, summary: "shows what there is, or the help of one command",
        arguments: [Argument(placeholder: "COMMAND", kind: .command, isOptional: true)],
        options: [.flag("--man", nil, "writes the manual page, portctl(1)")])
}
