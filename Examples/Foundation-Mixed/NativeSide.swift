// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// A process with this package's own ports and run loop.
func runNativeSide() throws {
    // A native client of the Mac-style server.
    let mac = try RemoteMessagePort(name: "org.example.mac")
    let reply = try mac.request(MachMessage(id: 1, text: "RemoteMessagePort asks"))
    say("native: the reply: \(reply.text)")

    // A native server, for the Mac-style client.
    let local = try LocalMessagePort(name: "org.example.native") { port, message in
        say("native: message \(message.id): \(message.text)")
        ThreadRunLoop.current.stop()
        return Array("LocalMessagePort answers".utf8)
    }
    try local.schedule()
    try mac.send(MachMessage(id: 2, text: "org.example.native"))
    ThreadRunLoop.current.run(for: .seconds(10))
    local.invalidate()
}
