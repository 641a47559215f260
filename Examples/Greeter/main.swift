// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import NamedPortServer

do {
    if CommandLine.arguments.count == 1 {
        let door = try LocalMessagePort(name: "org.example.greeter") { port, message in
            try? message.replyPort?.send(MachMessage(id: 2, text: "Hello, \(message.text)!"), within: .seconds(1))
            port.invalidate()  // one guest is enough
            ThreadRunLoop.main.stop()
            return nil
        }
        try door.schedule()
        let guest = try Process.run(URL(fileURLWithPath: "/proc/self/exe"), arguments: ["world"])
        ThreadRunLoop.current.run(for: .seconds(10))
        guest.waitUntilExit()
    } else {
        let greeter = try RemoteMessagePort(name: "org.example.greeter")
        let mine = MachPort()
        try greeter.send(MachMessage(id: 1, text: CommandLine.arguments[1], replyPort: mine.makeSendRight()))
        if let greeting = try mine.receive(within: .seconds(10)) {
            print("message \(greeting.id): \(greeting.text)")
        }
    }
} catch {
    FileHandle.standardError.write(Data("\(error)\n".utf8))
    exit(1)
}
