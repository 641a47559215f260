// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
import NamedPortServer
import PortSystem
import RunLoopCore
import Synchronization

/// Registers, frees, finds and lists names as its input says: "taken", "freed", "found", "names NAME …", or the error.
func hold(_ directory: String) throws(PortError) {
    let names = try nameServer(in: directory)
    var ports: [String: MachPort] = [:]
    say("ready")
    while let line = readLine() {
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        guard words.count == 2 else { giveUp("not understood: \(line)") }
        let name = words[1]
        do throws(PortError) {
            switch words[0] {
            case "take":
                let port = MachPort()
                try names.register(port, name: name)
                ports[name] = port
                say("taken")
            case "free":
                ports.removeValue(forKey: name)?.invalidate()
                say("freed")
            case "list": say("names " + (try names.list().map(\.name)).joined(separator: " "))
            case "find":
                _ = try names.lookUp(name)
                say("found")
            default: giveUp("not understood: \(line)")
            }
        } catch {
            say(sentence(error))
        }
    }
    for port in ports.values { port.invalidate() }
}

/// Sends one request and waits for the reply.
func ask(_ directory: String, _ name: String, id: Int32, text: String) throws(PortError) {
    let port = try RemoteMessagePort(name: name, nameServer: nameServer(in: directory))
    let reply = try port.request(
        MachMessage(id: id, text: text), sendLimit: serviceTimeout, replyLimit: serviceTimeout)
    say("reply \(reply.text)")
}

/// Sends numbered notes and exits at once.
func send(_ directory: String, _ name: String, count: Int) throws(PortError) {
    let port = try RemoteMessagePort(name: name, nameServer: nameServer(in: directory))
    for number in 0..<count {
        try port.send(MachMessage(id: 4, text: String(number)), sendLimit: serviceTimeout)
    }
    _exit(0)
}

/// Many connections to one port, all open before the first request.
func connectMany(_ directory: String, _ name: String, count: Int) throws(PortError) {
    let names = try nameServer(in: directory)
    guard let address = try? names.lookUp(name).destination.address() else { giveUp("no address") }
    var rights: [SendRight] = []
    for _ in 0..<count {
        guard let remote = try RightsTable.connect(to: address) else { throw PortError(.deadName) }
        rights.append(SendRight(remote))
    }
    var replies = 0
    for (number, right) in rights.enumerated() {
        let reply = try right.request(MachMessage(id: 1, text: "\(number)x"))
        if reply.text == "x" + String(String(number).reversed()) { replies += 1 }
    }
    say("replies \(replies)")
}

/// Sends a port the way to reach this process: a right in the message, or a name in its text.
func checkIn(_ directory: String, _ name: String, by way: String, _ rules: Rules) throws(PortError) {
    let names = try nameServer(in: directory)
    let servant = Servant(say: say)
    let ownName = "worker.\(sysProcessID())"
    let port = try LocalMessagePort(name: ownName, nameServer: names, handler: { servant.answer($0.port, $1) })
    try rules.hold(for: port.port, names)
    try port.schedule()
    let main = try names.lookUp(name)
    let message =
        way == "name"
        ? MachMessage(id: 100, text: ownName) : MachMessage(id: 100, replyPort: port.port.makeSendRight())
    try main.send(message, within: serviceTimeout)
    say("checked in")
    runUntilInputEnds()
    port.invalidate()
    servant.end()
}

/// Has its names and addresses in a shared directory, unless the environment names another directory, and says where.
func useDomain(_ path: String) throws(PortError) {
    try PortNameServer.setDomain(sharedDirectory: path)
    let port = MachPort()
    try PortNameServer.shared.register(port, name: "store")
    let address = try port.makeSendRight().destination.address().path
    say("address " + address.split(separator: "/").dropLast().map { "/" + $0 }.joined())
    for other in [nil, path + "-other", nil] {
        if let other { setenv(PortDirectory.variable, other, 1) } else { unsetenv(PortDirectory.variable) }
        say("names " + (try PortNameServer.shared.list().map(\.name)).joined(separator: " "))
    }
    port.invalidate()
}

/// Opens the process that owns a port, and says what is known of it, and what the kernel says about a signal.
func openOwner(_ directory: String, _ name: String) throws(PortError) {
    let right = try nameServer(in: directory).lookUp(name)
    let process = try right.owner().openProcess()
    say("owner \(process.identity.processID)")
    say(process.startTime == nil ? "no start" : "a start")
    say(process.supplementaryGroups == nil ? "no groups" : "groups")
    do throws(PortError) {
        try process.signal(0)
        say("signal")
    } catch {
        say("no signal: \(error.systemError.map { "\($0.code)" } ?? "")")
    }
    say(process.hasEnded() ? "has ended" : "runs")
}

/// Connects to a socket and says what its listener sends: bytes in hexadecimal, or nothing before it hangs up.
func connectRaw(_ path: String) {
    do throws(SystemError) {
        let socket = try sysPacketSocket()
        guard try sysConnect(socket.raw, path: path) else { return say("busy") }
        say("connected")
        while true {
            _ = try sysPoll(socket.raw, .readable, until: .distantFuture)
            let (outcome, head, payload) = try sysReceiveHeadedPacket(socket.raw, limit: 65_536)
            switch outcome {
            case .packet:
                let packet = (head.map { bytes(of: $0) } ?? []) + payload
                return say("received " + packet.map { String($0, radix: 16) }.joined(separator: " "))
            case .peerClosed: return say("received nothing")
            case .wouldBlock, .truncated, .descriptorsLost: continue
            }
        }
    } catch {
        say("error \(error)")
    }
}

/// Launches a worker process, asks it, and shuts it down: "reply TEXT", "worker HOW".
func launch() throws(PortError) {
    guard let path = CommandLine.arguments.first ?? sysEnvironment("PORT_TEST_PROGRAM") else { giveUp("no program") }
    var program = WorkerProgram(path, ["worker", "serve"])
    program.environment["PORT_TEST_ARGUMENTS"] = "worker serve"
    let worker = try PortWorker.launchProcess(program)
    let right = try worker.checkIn(within: serviceTimeout)
    say("reply \(try right.request(MachMessage(id: 1, text: "abc")).text)")
    say("worker \(try worker.shutDown(asking: MachMessage(id: 99), within: serviceTimeout))")
}

/// Waits for a name: "waiting", "found".
func wait(_ directory: String, _ name: String) throws(PortError) {
    let names = try PortNameServer(directory: directory)
    say("waiting")
    _ = try names.waitFor(name, within: serviceTimeout)
    say("found")
}

/// Waits for the notice that a port has died. Prints "ready" when it waits, and "died".
func notice(_ directory: String, _ name: String) throws(PortError) {
    let right = try PortNameServer(directory: directory).lookUp(name)
    try right.notifyWhenDead(on: .current) { _ in
        say("died")
        ThreadRunLoop.current.stop()
    }
    say("ready")
    ThreadRunLoop.current.run(until: .after(serviceTimeout))
}

/// The arguments of the program. Where /proc is not mounted Swift gives no arguments; the environment has them then.
func peerArguments() -> [String] {
    if !CommandLine.arguments.isEmpty { return Array(CommandLine.arguments.dropFirst()) }
    return (sysEnvironment("PORT_TEST_ARGUMENTS") ?? "").split(separator: " ").map(String.init)
}
