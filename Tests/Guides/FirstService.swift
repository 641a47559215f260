// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import NamedPortServer

func runCounter() throws {
    let count = LoopBound(0)
    let service = try LocalMessagePort(name: "org.example.counter") { port, message in
        switch message.id {
        case 1:
            count.value += Int(message.text) ?? 0
            return Array("\(count.value)".utf8)
        default:
            print("a client asked me to stop")
            port.invalidate()
            ThreadRunLoop.main.stop()
            return nil
        }
    }
    try service.schedule()
    print("the counter runs")

    let client = try Process.run(URL(fileURLWithPath: "/proc/self/exe"), arguments: ["client"])
    ThreadRunLoop.main.run()
    client.waitUntilExit()
}

func askCounter() throws {
    let counter = try RemoteMessagePort(name: "org.example.counter")
    for number in ["3", "4"] {
        let reply = try counter.request(MachMessage(id: 1, text: number), replyLimit: .seconds(5))
        print("\(number) more: \(reply.text)")
    }
    try counter.request(MachMessage(id: 2))
    print("asked it to stop")
}

/// The guide's main program; this one has other arguments.
func firstService() throws {
    if CommandLine.arguments.count == 1 {
        try runCounter()
    } else {
        try askCounter()
    }
}
