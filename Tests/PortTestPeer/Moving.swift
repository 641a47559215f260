// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
import NamedPortServer
import PortSystem
import RunLoopCore
import Synchronization

/// Answers each request with its process's number and the text.
private func answerWithProcess(_ port: MachPort, _ message: MachMessage) {
    if !message.expectsReply { return say("note \(message.text)") }
    try? message.reply(MachMessage(id: message.id, text: "\(sysProcessID()) \(message.text)"), within: serviceTimeout)
}

/// Gives each client of the name a right to another port, and obeys its input: "serve" answers at that port, "send TEXT"
/// sends to it; "move NAME" sends its receive right to the port with that name: "moved", or the error.
func moveAway(_ directory: String, _ name: String) throws(PortError) {
    let names = try nameServer(in: directory)
    guard let thread = try? ResidentThread(name: "mover") else { giveUp("no thread") }
    let port = MachPort(queueLimit: 100, handler: answerWithProcess)
    let right = port.makeSendRight()
    let front = MachPort { _, message in
        try? message.reply(MachMessage(components: [.right(right)]), within: serviceTimeout)
    }
    try names.register(front, name: name)
    try front.schedule(on: thread.loop)
    say("ready")
    while let line = readLine() {
        let words = line.split(separator: " ").map(String.init)
        do throws(PortError) {
            switch words[0] {
            case "serve": try port.schedule(on: thread.loop)
            case "move":
                try names.lookUp(words[1]).send(MachMessage(components: [.receiveRight(port)]), within: serviceTimeout)
                say("moved")
            case "send": try right.send(MachMessage(text: words[1]), within: serviceTimeout)
            default: giveUp("not understood: \(line)")
            }
        } catch {
            say(sentence(error))
        }
    }
    front.invalidate()
    port.invalidate()
    thread.stop()
}

/// Takes the receive right that comes to the name, and serves it: "arrived". A deaf one reads nothing.
func succeed(_ directory: String, _ name: String, isDeaf: Bool) throws(PortError) {
    let names = try nameServer(in: directory)
    let arrived = Mutex<[MachPort]>([])
    let carrier = MachPort { _, message in
        for port in message.receiveRights {
            arrived.withLock { $0.append(port) }
            port.setHandler(answerWithProcess)
            try? port.schedule()
            say("arrived")
        }
    }
    carrier.setAcceptsReceiveRights(true)
    try names.register(carrier, name: name)
    if !isDeaf { try carrier.schedule() }
    say("ready")
    runUntilInputEnds()
    for port in arrived.withLock({ $0 }) { port.invalidate() }
    carrier.invalidate()
}

/// Answers at a name with its process's number and the text; "hand NAME" hands the port over to the process with that
/// name: "handed", or the error.
func handOver(_ directory: String, _ name: String) throws(PortError) {
    let names = try nameServer(in: directory)
    guard let thread = try? ResidentThread(name: "server") else { giveUp("no thread") }
    let local = try LocalMessagePort(name: name, nameServer: names) { _, message in
        Array("\(sysProcessID()) \(message.text)".utf8)
    }
    try local.schedule(on: thread.loop)
    say("ready")
    while let line = readLine() {
        let words = line.split(separator: " ").map(String.init)
        do throws(PortError) {
            guard words.count == 2, words[0] == "hand" else { giveUp("not understood: \(line)") }
            try local.handOver(to: names.lookUp(words[1]), within: serviceTimeout)
            say("handed")
        } catch {
            say(sentence(error))
        }
    }
    local.invalidate()
    thread.stop()
}

/// Takes over the port that is handed over to the name, and answers in the same way: "arrived as NAME".
func takeOver(_ directory: String, _ name: String) throws(PortError) {
    let names = try nameServer(in: directory)
    let arrived = Mutex<[LocalMessagePort]>([])
    let carrier = MachPort { _, message in
        do throws(PortError) {
            let local = try LocalMessagePort(takingOver: message, nameServer: names) { _, message in
                Array("\(sysProcessID()) \(message.text)".utf8)
            }
            arrived.withLock { $0.append(local) }
            try local.schedule()
            say("arrived as \(local.name ?? "nobody")")
        } catch {
            say(sentence(error))
        }
    }
    carrier.setAcceptsReceiveRights(true)
    try names.register(carrier, name: name)
    try carrier.schedule()
    say("ready")
    runUntilInputEnds()
    for local in arrived.withLock({ $0 }) { local.invalidate() }
    carrier.invalidate()
}

/// Passes on what comes to the port "collector", and answers with the same. "begin" makes the port "service"; "hand NAME"
/// hands it over to the process with that name: "handed". A port that comes is served: "arrived".
func shuttle(_ directory: String, _ name: String) throws(PortError) {
    let names = try nameServer(in: directory)
    let collector = try names.lookUp("collector")
    guard let thread = try? ResidentThread(name: "shuttle") else { giveUp("no thread") }
    let answer: LocalMessagePort.Handler = { _, message in
        do throws(PortError) {
            try collector.send(MachMessage(id: message.id, bytes: message.bytes), within: serviceTimeout)
        } catch {
            say("not collected: \(error)")
        }
        return message.bytes
    }
    let held = Mutex<LocalMessagePort?>(nil)
    let carrier = MachPort { _, message in
        do throws(PortError) {
            let local = try LocalMessagePort(takingOver: message, nameServer: names, handler: answer)
            held.withLock { $0 = local }
            try local.schedule(on: thread.loop)
            say("arrived")
        } catch {
            say(sentence(error))
        }
    }
    carrier.setAcceptsReceiveRights(true)
    try names.register(carrier, name: name)
    try carrier.schedule(on: thread.loop)
    say("ready")
    while let line = readLine() {
        let words = line.split(separator: " ").map(String.init)
        do throws(PortError) {
            if words[0] == "begin" {
                let local = try LocalMessagePort(name: "service", nameServer: names, handler: answer)
                held.withLock { $0 = local }
                try local.schedule(on: thread.loop)
                say("began")
            } else if let local = held.withLock({ $0.take() }) {
                try local.handOver(to: names.lookUp(words[1]), within: serviceTimeout)
                say("handed")
            }
        } catch {
            say(sentence(error))
        }
    }
    held.withLock { $0 }?.invalidate()
    carrier.invalidate()
    thread.stop()
}
