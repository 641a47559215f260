// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import Synchronization
import TestSupport
import Testing

@Suite("addresses that are just made", .contract) struct AddressRaceTests {
    @Test("threads that ask for an address at once get one, and whoever sees it finds the port, not a connection to it")
    func visible() async throws {
        try await onBench(over: .memory) { bench in
            for _ in 0..<30 {
                let port = MachPort()
                let start = Gate()
                let makers = (0..<2).map { _ in
                    runOnThread {
                        start.wait()
                        return try port.core.address(in: bench.directory)
                    }
                }
                let watcher = runOnThread {
                    start.open()
                    while true {
                        guard let address = port.core.state.withLock({ $0.extras.address }) else { continue }
                        return try RightsTable.shared.right(to: address)
                    }
                }
                #expect(try watcher.join() == port.makeSendRight())
                let addresses = try makers.map { try $0.join() }
                #expect(addresses[0] == addresses[1])
                port.invalidate()
            }
        }
    }

    @Test("a loop that comes while the address is made hears what is sent there")
    func scheduledMeanwhile() async throws {
        try await onBench(over: .socket) { bench in
            let worker = Worker()
            for _ in 0..<30 {
                let heard = Gate("a message by socket")
                let port = MachPort { _, _ in heard.open() }
                let start = Gate()
                let scheduler = runOnThread {
                    start.wait()
                    try port.schedule(on: worker.loop)
                }
                start.open()
                try bench.right(to: port).send(MachMessage())
                try scheduler.join()
                heard.wait()
                port.invalidate()
            }
            try worker.end()
        }
    }
}
