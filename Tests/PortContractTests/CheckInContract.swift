// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import TestSupport
import Testing

@Suite("the two-way check-in (S17, listings 3-12 to 3-15)", .contract) struct CheckInContract {
    @Test(
        "a worker checks in with message 100 and its own port, then both send to each other",
        arguments: TestTransport.inProcess)
    func checkIn(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let transcript = Recorder<String>()
            let main = ThreadRunLoop.current
            // 3-12 and 3-13: the main thread makes a port, schedules it and launches the worker with it.
            let mainPort = try bench.port { port, message in
                #expect(main.isCurrent)
                transcript.append("main \(message.id) \(message.text)")
                switch message.id {
                case 100:
                    // 3-13: the reply port of the check-in is the worker's own.
                    guard let worker = message.replyPort else {
                        Issue.record("no reply port")
                        return
                    }
                    for id in Int32(1)...3 { try? worker.send(MachMessage(id: id, text: "work")) }
                    try? worker.send(MachMessage(id: 99))
                case 104: port.invalidate()
                default: break
                }
            }
            try mainPort.schedule()
            let toMain = try bench.right(to: mainPort)
            let worker = runOnThread(name: "check-in") {
                // 3-14: the worker makes its own port and sends the check-in.
                let mine = try bench.port { port, message in
                    transcript.append("worker \(message.id) \(message.text)")
                    if message.id == 99 { return port.invalidate() }
                    try? toMain.send(MachMessage(id: 100 + message.id, text: "done"))
                }
                try mine.schedule()
                try toMain.send(MachMessage(id: 100, text: "hello", replyPort: bench.right(to: mine)))
                let result = ThreadRunLoop.current.run(for: longTimeout)
                try toMain.send(MachMessage(id: 104, text: "bye"))
                return result
            }
            #expect(main.run(for: longTimeout) == .finished)
            #expect(try worker.join() == .finished)
            let lines = transcript.elements
            #expect(
                lines.filter { $0.hasPrefix("main") } == [
                    "main 100 hello", "main 101 done", "main 102 done", "main 103 done", "main 104 bye",
                ])
            #expect(
                lines.filter { $0.hasPrefix("worker") } == [
                    "worker 1 work", "worker 2 work", "worker 3 work", "worker 99 ",
                ])
        }
    }

    @Test("a worker of the far side checks in", arguments: TestTransport.allCases)
    func workerOfFarSide(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let transcript = Recorder<String>()
            let mainPort = try bench.port { port, message in
                transcript.append("main \(message.id) \(message.text)")
                if message.id == 104 { port.invalidate() }
                guard message.id == 100, let worker = message.replyPort else { return }
                for id in Int32(1)...3 { try? worker.send(MachMessage(id: id, text: "work")) }
                try? worker.send(MachMessage(id: 99))
            }
            try mainPort.schedule()
            let worker = try bench.farPort(.worker, handingOnTo: bench.right(to: mainPort), isServed: true)
            let toMain = try bench.farSender(to: mainPort)
            try toMain.send(MachMessage(id: 100, text: "hello", replyPort: worker.makeSendRight()))
            #expect(ThreadRunLoop.current.run(for: longTimeout) == .finished)
            #expect(
                transcript.elements == [
                    "main 100 hello", "main 101 done", "main 102 done", "main 103 done", "main 104 bye",
                ])
            #expect(
                try worker.lines(4) == ["worker 1 work", "worker 2 work", "worker 3 work", "worker 99 "])
        }
    }
}
