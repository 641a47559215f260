// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("addresses that have just been made", .contract) struct AddressRaceTests {
    @Test("threads that ask for an address at once get the same one, of the port itself, not of a connection")
    func visible() async throws {
        try await onBench(over: .memory) { bench in
            for _ in 0..<30 {
                let port = MachPort()
                let start = Gate()
                let makers = (0..<2).map { _ in
                    runOnThread {
                        start.wait()
                        return try port.localPort.address(in: bench.directory)
                    }
                }
                let thread = runOnThread {
                    start.open()
                    while true {
                        guard let address = port.localPort.state.withLock({ $0.coldState.address }) else { continue }
                        return try RightsTable.shared.right(to: address)
                    }
                }
                #expect(try thread.join() == port.makeSendRight())
                let addresses = try makers.map { try $0.join() }
                #expect(addresses[0] == addresses[1])
                port.invalidate()
            }
        }
    }

    @Test("a loop that joins while the address is made receives what is sent there")
    func scheduledMeanwhile() async throws {
        try await onBench(over: .socket) { bench in
            let worker = Worker()
            for _ in 0..<30 {
                let received = Gate("a message by socket")
                let port = MachPort { _, _ in received.open() }
                let start = Gate()
                let scheduler = runOnThread {
                    start.wait()
                    try port.schedule(on: worker.loop)
                }
                start.open()
                try bench.right(to: port).send(MachMessage())
                try scheduler.join()
                received.wait()
                port.invalidate()
            }
            try worker.end()
        }
    }

    #if PORT_FAULTS
    @Test("of threads that connect at once the first decides, even if no process was listening when it tried")
    func connectingAtOnce() async throws {
        try await onBench(over: .socket) { bench in
            let path = bench.directory.path + "/raw"
            let socket = SharedDescriptor(try sysPacketSocket())
            try sysBind(socket.rawValue, path: path)
            let port = RemotePort(PortAddress(path: path))
            // Between the check for a connection and the connect another thread finds no listener, and then there is
            // one.
            let other: @Sendable () -> Void = {
                #expect(portError { () throws(PortError) in _ = try port.reached() }?.code == .deadName)
                #expect(throws: Never.self) { try sysListen(socket.rawValue, backlog: 8) }
            }
            let (failure, hits) = SystemCallFaults.with([.init(.connect, .precede { Self.runAlone(other) })]) {
                portError { () throws(PortError) in _ = try port.reached() }
            }
            #expect(hits == 1 && failure?.code == .deadName)
            #expect(port.pollDeath() && port.connection == nil)
        }
    }

    /// On a thread without faults.
    private static func runAlone(_ body: @escaping @Sendable () -> Void) {
        #expect(throws: Never.self) { try runOnThread { body() }.join() }
    }
    #endif
}
