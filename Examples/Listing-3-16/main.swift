// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Listing 3-16: a port is registered under a name; each thread that knows the name finds it.

import Foundation
import NamedPortServer

do {
    // Configure the object and add it to the current run loop.
    let localPort = MachPort { port, message in
        print("main: message \(message.id): \(message.text)")
        port.invalidate()
        ThreadRunLoop.current.stop()
    }
    try ThreadRunLoop.current.add(localPort, forMode: .default)

    // Register the port using a specific name. The name must be unique.
    let localPortName = "MyPortName"
    try PortNameServer.shared.register(localPort, name: localPortName)

    // The chapter's next sentence: another thread gets the port by its name. A thread of another process would do the
    // same.
    Thread.detachNewThread {
        do {
            let remotePort = try PortNameServer.shared.lookUp(localPortName)
            print("another thread: found \(localPortName)")
            try remotePort.send(MachMessage(id: 1, text: "I found you by your name."), within: .seconds(10))
        } catch {
            print("another thread: \(error)")
        }
    }
    ThreadRunLoop.main.run()

    do {
        _ = try PortNameServer.shared.lookUp(localPortName)
    } catch {
        print("main: the name went with its port: \(error.code)")
    }
} catch {
    FileHandle.standardError.write(Data("listing-3-16: \(error)\n".utf8))
    exit(1)
}
