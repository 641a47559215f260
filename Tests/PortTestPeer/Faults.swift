// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
import NamedPortServer
import PortSystem

/// Answers each message with its own text after it has written that as a line to a file, until the input ends.
func logHandled(_ directory: String, _ name: String, _ path: String, _ rules: Rules) throws(PortError) {
    let file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard file >= 0 else { giveUp("cannot write \(path)") }
    let names = try nameServer(in: directory)
    let port = try LocalMessagePort(name: name, nameServer: names) { _, message in
        do throws(SystemError) {
            try sysWriteAll(file, Array((message.text + "\n").utf8))
        } catch {
            giveUp("cannot write: \(error)")
        }
        return message.bytes
    }
    try rules.hold(for: port.port, names)
    try port.schedule()
    say("ready")
    runUntilInputEnds()
    port.invalidate()
}

/// Sends the numbers from 0 on, alternately as request and as note, and exits with status 3 if a reply is not the
/// request's.
func stream(_ directory: String, _ name: String, count: Int) throws(PortError) {
    let port = try RemoteMessagePort(name: name, nameServer: nameServer(in: directory))
    for number in 0..<count {
        let message = MachMessage(id: number % 2 == 0 ? 1 : 4, text: String(number))
        if number % 2 == 0 {
            let reply = try port.request(message, sendLimit: serviceTimeout, replyLimit: serviceTimeout)
            if reply.text != String(number) { exit(3) }
        } else {
            try port.send(message, sendLimit: serviceTimeout)
        }
    }
}

/// For each line of the input: connects anew, sends it as a request, and prints "reply TEXT", or the error and what
/// became of the request.
func pace(_ directory: String, _ name: String) throws(PortError) {
    let names = try nameServer(in: directory)
    say("ready")
    while let line = readLine() {
        do throws(PortError) {
            let port = try RemoteMessagePort(name: name, nameServer: names)
            let reply = try port.request(
                MachMessage(id: 1, text: line), sendLimit: serviceTimeout, replyLimit: serviceTimeout)
            say("reply \(reply.text)")
        } catch {
            say("\(sentence(error)) \(error.delivery)")
        }
    }
}

/// Connects COUNT times, sends a request over each connection, says how many were answered, and keeps all connections
/// until the input ends.
func connectManyAndStay(_ directory: String, _ name: String, count: Int) throws(PortError) {
    let names = try nameServer(in: directory)
    let first = try unlessBusy { () throws(PortError) in try names.lookUp(name) }
    guard let address = try? first.destination.address() else { giveUp("no address") }
    var rights = [first]
    while rights.count < count {
        let remote = try unlessBusy { () throws(PortError) in try RightsTable.connect(to: address) }
        guard let remote else { throw PortError(.deadName) }
        rights.append(SendRight(remote))
    }
    var replies = 0
    for (number, right) in rights.enumerated() {
        let text = "\(sysProcessID()).\(number)"
        let reply = try right.request(
            MachMessage(id: 1, text: text), sendLimit: serviceTimeout, replyLimit: serviceTimeout)
        if reply.text == String(text.reversed()) { replies += 1 }
    }
    say("replies \(replies)")
    runUntilInputEnds()
    withExtendedLifetime(rights) {}
}

/// Connects, and tries again while the server's backlog is full.
private func unlessBusy<Result>(_ connect: () throws(PortError) -> Result) throws(PortError) -> Result {
    let deadline = MonotonicInstant.after(serviceTimeout)
    while true {
        do throws(PortError) {
            return try connect()
        } catch {
            if error.code != .sendTimedOut || .now >= deadline { throw error }
        }
        sched_yield()
    }
}

/// Lets the process, and those that it starts, open as many descriptors as the system allows.
func raiseDescriptorLimit() {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    setrlimit(resource, &limit)
}
