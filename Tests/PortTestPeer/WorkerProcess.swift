// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// What `worker` does, by its kind. All but the first three check in.
//
//   exit STATUS   exits at once                             serve      answers as Server.swift says; leaves with 99
//   crash         kills itself with SIGUSR1                 facts      checks in with what it was started with
//   silent        never checks in; leaves with its parent   stubborn   ignores SIGTERM and 99
//   lastwords N   sends N messages when it is asked to      brief      exits with status 7 after it checked in
//                 leave, and then leaves                    chatty N   the same, and sends N messages before
//   asking        checks in with a request, and exits with status 7 before it is answered
//   passing       as `serve`; to 98 it has the right inside ask its parent's port, to 97 it compares both

import ContractServices
import Glibc
import NamedPortServer
import PortSystem
import RunLoopCore

func work(_ kind: String, _ argument: String) throws(PortError) {
    let facts = Facts()  // before the bootstrap descriptor is adopted
    switch kind {
    case "exit": exit(CInt(argument) ?? 0)
    case "crash": kill(sysProcessID(), SIGUSR1)
    default: break
    }
    guard let parent = try SendRight.bootstrap() else { return say("no parent") }
    let loop = ThreadRunLoop.current
    try parent.notifyWhenDead { _ in loop.stop() }
    let servant = Servant(say: say)
    let port = MachPort { port, message in
        if message.id == 99 {
            if kind == "lastwords" { talk(to: parent, count: argument) }
            return kind == "stubborn" ? () : loop.stop()
        }
        if kind == "passing", let reply = pass(parent, for: message) {
            try? message.reply(MachMessage(id: message.id, text: reply), within: serviceTimeout)
            return
        }
        guard let reply = servant.answer(port, message), message.expectsReply else { return }
        try? message.reply(MachMessage(id: message.id, bytes: reply), within: serviceTimeout)
    }
    if kind == "stubborn" { signal(SIGTERM, SIG_IGN) }
    if kind == "chatty" { talk(to: parent, count: argument) }
    if kind == "asking" {
        var request = MachMessage(id: MachMessage.checkIn, replyPort: port.makeSendRight())
        request.setReplyRight(port.makeSendOnceRight())
        try parent.send(request, within: serviceTimeout)
        exit(7)
    }
    if kind != "silent" {
        try port.schedule()
        try parent.checkIn(port, components: [.bytes(Array(facts.text.utf8))], within: serviceTimeout)
    }
    if kind == "brief" || kind == "chatty" { exit(7) }
    loop.run()
    port.invalidate()
    servant.end()
}

/// What becomes of the right to the parent's port.
private func pass(_ parent: SendRight, for message: MachMessage) -> String? {
    do throws(PortError) {
        switch (message.id, message.rights.first) {
        case (98, let other?):
            return try other.request(MachMessage(id: Act.askOther, components: [.right(parent)])).text
        case (97, let mine?): return mine == parent ? "equal" : "different"
        default: return nil
        }
    } catch {
        return sentence(error)
    }
}

/// Sends `count` messages, each of which waits for room.
private func talk(to parent: SendRight, count: String) {
    for _ in 0..<(Int(count) ?? 0) {
        try? parent.send(MachMessage(id: 6, bytes: [UInt8](repeating: 7, count: 1000)), within: serviceTimeout)
    }
}

/// What a process was started with.
struct Facts {
    /// One fact per line.
    let text: String

    init() {
        var lines = ["descriptors " + Self.descriptors().map(String.init).joined(separator: " ")]
        lines.append("closing " + Self.descriptors(closing: true).map(String.init).joined(separator: " "))
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

    /// The numbers of the open descriptors; or of those alone that a program which this process starts does not get.
    private static func descriptors(closing: Bool = false) -> [CInt] {
        (0..<1024).filter { number in
            let flags = fcntl(number, F_GETFD)
            return flags != -1 && (!closing || flags & FD_CLOEXEC != 0)
        }
    }

    private static func status() -> [String] {
        guard let file = try? sysOpen("/proc/self/status", .reading), let bytes = try? sysRead(file.raw, capacity: 8192)
        else { return [] }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    }
}
