// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort
import TestSupport
import Testing

@Suite("delegates", .contract) struct DelegateContract {
    private final class Delegate: MachPortDelegate {
        let got = Recorder<(MachPort, Int32)>()

        func handleMachMessage(_ message: MachMessage, at port: MachPort) {
            got.append((port, message.id))
            try? message.reply(MachMessage(id: message.id + 1))
        }
    }

    @Test(
        "a delegate handles messages, is not kept alive, and a handler replaces it",
        arguments: TestTransport.withName)
    func delegate(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let worker = Worker()
            let port = try bench.port()
            try port.schedule(on: worker.loop)
            let right = try bench.farSender(to: port)
            do {
                let delegate = Delegate()
                port.setDelegate(delegate)
                #expect(port.delegate === delegate)
                #expect(try right.ask(MachMessage(id: 1)).id == 2)
                #expect(delegate.got.elements.map(\.1) == [1] && delegate.got.elements[0].0 == port)
            }
            // The thread that called it may hold it for a moment longer.
            try worker.perform {}
            #expect(port.delegate == nil)
            #expect(portError { () throws(PortError) in _ = try right.ask(MachMessage()) }?.code == .replyDropped)
            let delegate = Delegate()
            port.setDelegate(delegate)
            port.setHandler { _, message in try? message.reply(MachMessage(id: 9)) }
            #expect(port.delegate == nil)
            #expect(try right.ask(MachMessage(id: 1)).id == 9)
            port.setDelegate(nil)
            #expect(portError { () throws(PortError) in _ = try right.ask(MachMessage()) }?.code == .replyDropped)
            port.invalidate()
            try worker.end()
        }
    }
}
