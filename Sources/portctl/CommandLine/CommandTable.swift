// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

extension CommandDescription {
    /// All commands, in the order of the help.
    static let table: [CommandDescription] = [
        list, info, send, request, serve, watch, activate, wait, trace, bench, doctor, completion, help,
    ]

    private static let name = Argument(placeholder: "NAME", kind: .portName)
    private static let body = [
        name, Argument(placeholder: "ID", kind: .messageID),
        Argument(placeholder: "DATA", kind: .data, isOptional: true),
    ]
    private static let file = Option.option("--file", "f", "F", .file, summary: "sends what is in the file")
    private static let bodyNote =
        "ID is a number from \(Int32.min) to \(Int32.max). DATA is empty unless said otherwise; - is standard input."

    private static let list = CommandDescription(
        command: .list, summary: "shows the names that are held, who holds them, and what their ports have counted",
        options: [
            .flag("--watch", "w", "shows it again and again, in place on a terminal"),
            .option("--interval", "i", "T", .duration, "1s", "how long to wait in between"),
            .option("--count", "n", "N", .count, summary: "ends after so many times"),
            .option("--timeout", "t", "T", .duration, "500ms", "how long to wait for the owners' answers"),
            .flag("--names", nil, "writes names only, one in a line"),
            .flag("--all", "a", "shows also the names by which processes let themselves be traced, trace.PID"), .json,
        ],
        notes: [
            "PEERS counts connections of other processes, QUEUE the messages that wait and how many may, MESSAGES and "
                + "BYTES what has come, DROPS what the queue has dropped. All owners are asked at once. One that lives "
                + "and does not answer in time is busy: it is stopped, or its run loop has something else to do. One that "
                + "does not tell has - in these columns. A name that is waiting is held by portctl activate, which "
                + "starts the owner when somebody connects."
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
            "A port drops a message that is longer than its owner lets it take, and whoever sent it is not told. One of more "
                + "than \(Invocation.silentLimit) bytes, the standard limit, is not sent, and the status is 1: request tells "
                + "what came of it.",
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
        options: [.flag("--quiet", "q", "does not tell what came")],
        notes: [
            "With COMMAND, it is run for each message, one after the other, with the bytes on its standard input, and in its environment "
                + "PORT_MESSAGE_ID and PORT_SENDER, the process that sent it. What it writes is the reply; if it ends "
                + "with another status than 0, that is the code of an error reply.",
            "A message with the id 0 ends it. When portctl activate, or systemd, has started it, it takes over their socket. "
                + "It lets itself be watched and traced.",
        ])
}
