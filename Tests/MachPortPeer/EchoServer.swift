// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts

/// Answers each message at its `sendPort` with the same number and components, and a port of its own as the last component.
/// A message with the number 99 ends it, 96 makes it trap; 98 makes it answer at the first port among the components. 97 ends
/// it, and its port, and is answered with 2 MiB.
final class EchoServer: NSObject, NSMachPortDelegate {
    private let port = NSMachPort()
    private let name: String
    private var isRunning = true

    init(name: String) { self.name = name }

    func run() {
        port.setDelegate(self)
        RunLoop.current.add(port, forMode: .default)
        say(NSMachBootstrapServer.shared.registerPort(port, name: name) ? "ready" : "refused")
        while isRunning, RunLoop.current.run(mode: .default, before: .distantFuture) {}
        port.invalidate()
        say("ended")
    }

    func handle(_ message: PortMessage) {
        if message.msgid == 99 {
            isRunning = false
            return
        }
        if message.msgid == 96 { fatalError("a delegate that traps") }
        if message.msgid == 97 {
            isRunning = false
            port.invalidate()
            let reply = PortMessage(send: message.sendPort, receive: nil, components: [Data(count: 2 << 20)])
            return say("answered 97 \(reply.send(before: Date(timeIntervalSinceNow: 60)))")
        }
        let answer = message.msgid == 98 ? message.components?.lazy.compactMap { $0 as? Port }.first : message.sendPort
        let components = (message.components ?? []) + [port]
        let reply = PortMessage(send: answer, receive: port, components: components)
        reply.msgid = message.msgid
        let isSent = reply.send(before: Date(timeIntervalSinceNow: 60))
        say("answered \(message.msgid) \(isSent)")
    }
}

/// Says the number and the size of each message.
private final class SizeLog: NSObject, NSMachPortDelegate {
    var count = 0

    func handle(_ message: PortMessage) {
        count += 1
        say("got \(message.msgid) \((message.components?.first as? NSData)?.length ?? 0)")
    }
}

/// Registers a port that nobody serves until the line `serve COUNT`, and waits for the end of standard input.
func hold(name: String) {
    let (port, log) = (NSMachPort(), SizeLog())
    port.setDelegate(log)
    say(NSMachBootstrapServer.shared.registerPort(port, name: name) ? "ready" : "refused")
    while let line = readLine() {
        guard line.hasPrefix("serve "), let count = Int(line.dropFirst(6)) else { continue }
        RunLoop.current.add(port, forMode: .default)
        while log.count < count, RunLoop.current.run(mode: .default, before: .distantFuture) {}
    }
    port.invalidate()
}
