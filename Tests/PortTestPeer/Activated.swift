// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
import NamedPortServer
import PortSystem
import RunLoopCore

/// Checks in for a name that a supervisor declared.
private func checkIn(_ directory: String, _ name: String, _ servant: Servant) throws(PortError) -> MachPort {
    let names = try nameServer(in: directory)
    let port = MachPort { port, message in
        guard let reply = servant.answer(port, message), message.expectsReply else { return }
        try? message.reply(MachMessage(id: message.id, bytes: reply), within: serviceTimeout)
    }
    try names.checkIn(port, name: name)
    say("checked in")
    return port
}

/// Answers messages to a declared name until the input ends.
func activated(_ directory: String, _ name: String) throws(PortError) {
    let servant = Servant(say: say)
    let port = try checkIn(directory, name, servant)
    try port.schedule()
    runUntilInputEnds()
    port.invalidate()
    servant.end()
}

/// The same, with a port that checks in itself.
func activatedLocal(_ directory: String, _ name: String) throws(PortError) {
    let names = try nameServer(in: directory)
    let local = try LocalMessagePort(checkingInAs: name, nameServer: names) { _, message in message.bytes.reversed() }
    try local.schedule()
    say("checked in as \(local.name ?? "nobody")")
    runUntilInputEnds()
    local.invalidate()
}

/// Shows that a socket is adopted once, and that neither a child nor a program that replaces this one finds it.
func activatedAgain(_ directory: String, _ name: String) throws(PortError) {
    let port = try checkIn(directory, name, Servant(say: say))
    do throws(PortError) {
        _ = try checkIn(directory, name, Servant(say: say))
    } catch {
        say(sentence(error))
    }
    let program = CommandLine.arguments[0]
    system("'\(program)' activated '\(directory)' '\(name)'")
    port.invalidate()
    let words = [program, "activated", directory, name]
    let arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    execv(program, arguments)
    giveUp("cannot start \(program)")
}
