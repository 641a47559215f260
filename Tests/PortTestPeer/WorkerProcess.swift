// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// What `worker` does, by its kind. All but the first three check in.
//
//   exit STATUS   exits at once                             serve      answers as Server.swift says; leaves with 99
//   crash         kills itself with SIGUSR1                 facts      checks in with what it was started with
//   silent        never checks in; leaves with its parent   stubborn   ignores SIGTERM and 99
//                                                           brief      exits with status 7 after it checked in

import Glibc
import NamedPortServer
import PortSystem
import RunLoopCore

func work(_ kind: String, _ argument: String) throws(PortError) {
    let facts = Facts()  // before the bootstrap descriptor is taken
    switch kind {
    case "exit": exit(CInt(argument) ?? 0)
    case "crash": kill(sysProcessID(), SIGUSR1)
    default: break
    }
    guard let parent = try SendRight.bootstrap() else { return say("no parent") }
    let loop = ThreadRunLoop.current
    try parent.notifyWhenDead { loop.stop() }
    let server = Server()
    let port = MachPort { port, message in
        if message.id == 99 {
            return kind == "stubborn" ? () : loop.stop()
        }
        guard let reply = server.answer(port, message), message.expectsReply else { return }
        try? message.reply(MachMessage(id: message.id, bytes: reply), within: .seconds(60))
    }
    if kind == "stubborn" { signal(SIGTERM, SIG_IGN) }
    if kind != "silent" {
        try port.schedule()
        try parent.checkIn(port, components: [.bytes(Array(facts.text.utf8))], within: .seconds(60))
    }
    if kind == "brief" { exit(7) }
    loop.run()
    port.invalidate()
    server.end()
}

/// What a process was started with.
struct Facts {
    /// One fact a line.
    let text: String

    init() {
        var lines = ["descriptors " + Self.descriptors().map(String.init).joined(separator: " ")]
        if let directory = getcwd(nil, 0) {
            lines.append("directory " + String(cString: directory))
            free(directory)
        }
        lines.append("variable " + (sysEnvironment("PORT_TEST_VARIABLE") ?? "none"))
        lines.append("home " + (sysEnvironment("HOME") ?? "none"))
        for line in Self.status() where line.hasPrefix("SigBlk:") || line.hasPrefix("SigIgn:") {
            lines.append(line.filter { $0 != "\t" })
        }
        text = lines.joined(separator: "\n")
    }

    /// The numbers of the open descriptors.
    private static func descriptors() -> [CInt] {
        (0..<1024).filter { fcntl($0, F_GETFD) != -1 }
    }

    private static func status() -> [String] {
        guard let file = try? sysOpen("/proc/self/status", .reading), let bytes = try? sysRead(file.raw, capacity: 8192)
        else { return [] }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    }
}
