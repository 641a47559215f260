// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

func activation() throws {
    let port = MachPort { _, message in
        try? message.reply(MachMessage(text: "Hello, \(message.text)!"))
    }
    do {
        try PortNameServer.shared.checkIn(port, name: "org.example.greeter")
    } catch {
        guard error.code == .nameNotDeclared else { throw error }
        try PortNameServer.shared.register(port, name: "org.example.greeter")  // started by hand
    }
    try port.schedule()
    ThreadRunLoop.main.run()
}
