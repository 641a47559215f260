// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// restart serve     says which process it is, until it is to crash or to stop
// restart ask       asks, has the service crash, and asks the next one through the same object

import Foundation
import NamedPortServer

let portName = "org.example.restart"

/// Prints a line at once, also into a pipe.
func say(_ text: String) {
    print("process \(getpid()): \(text)")
    fflush(nil)
}

/// Answers until it is to stop. A crash ends the process with nothing cleaned up.
func serve() throws(PortError) {
    let port = try LocalMessagePort(name: portName) { _, message in
        switch message.text {
        case "crash":
            say("crashes")
            _exit(3)
        case "stop": ThreadRunLoop.main.stop()
        default: break
        }
        return Array("\(message.text), says process \(getpid())".utf8)
    }
    try port.schedule()
    say("serves")
    ThreadRunLoop.main.run()
    port.invalidate()
}

/// Asks one service, and after its crash the next one.
func ask() throws(PortError) {
    let service = try RemoteMessagePort(reconnectingTo: portName)
    say("the reply is \"\(try service.request(MachMessage(text: "hello")).text)\"")
    do throws(PortError) {
        _ = try service.request(MachMessage(text: "crash"))
    } catch {
        say("the request failed: \(error.code), delivery \(error.delivery)")
    }
    // Not needed to go on: it shows that the interruption is reported. It also has the reason.
    try service.right.notifyWhenStateChanges(from: .connected, on: .main) { state in
        if case .interrupted = state { say("interrupted: waits for the next service") }
        ThreadRunLoop.main.stop()
    }
    ThreadRunLoop.main.run()
    // Waits until the service is there again.
    say("the reply is \"\(try service.request(MachMessage(text: "hello again")).text)\"")
    _ = try service.request(MachMessage(text: "stop"))
}

do {
    switch CommandLine.arguments.dropFirst().first {
    case "serve": try serve()
    case "ask": try ask()
    default:
        FileHandle.standardError.write(Data("usage: restart serve|ask\n".utf8))
        exit(EX_USAGE)
    }
} catch {
    FileHandle.standardError.write(Data("restart: \(error)\n".utf8))
    exit(1)
}
