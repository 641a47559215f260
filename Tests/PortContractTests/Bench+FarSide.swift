// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import NamedPortServer
import TestSupport
import Testing

extension Bench {
    /// A port on the far side.
    func farPort(
        queueLimit: Int = MachPort.defaultQueueLimit, policy: QueuePolicy = .refuse, _ service: Service = .none,
        handingOnTo other: SendRight? = nil, isServed: Bool = false
    ) throws -> FarPort {
        let parts = MachMessage(components: other.map { [.right($0)] } ?? [])
        let order = Order(.makePort, numbers: [queueLimit, isServed ? 1 : 0], texts: [service.rawValue, "\(policy)"])
        return FarPort(far, try far.order(order, parts).note.numbers[0])
    }

    /// A right to a port of the far side. Over sockets each call makes a connection.
    func right(to port: FarPort) throws -> SendRight {
        switch transport {
        case .memory: try port.makeSendRight()
        case .socket, .ring, .process: SendRight(try connect(to: port.address()))
        }
    }

    /// A port of the far side whose queue, and every buffer on the way to it, are full; a right to it; and how many
    /// messages that took, with the ids 0, 1, 2 and so on.
    func farFull(queueLimit: Int = 1) throws -> (port: FarPort, right: SendRight, count: Int32) {
        let port = try farPort(queueLimit: queueLimit)
        let right = try right(to: port)
        return (port, right, try right.fill(bytes: 3000))
    }

    /// A right of the far side to a port of this one.
    func farSender(to port: MachPort) throws -> FarSender {
        let answer =
            switch transport {
            case .memory: try far.order(Order(.connect), MachMessage(components: [.right(port.makeSendRight())]))
            case .socket, .process: try far.order(Order(.connect, texts: [port.localPort.address(in: directory).path]))
            case .ring: try far.order(Order(.connect), MachMessage(components: [.right(right(to: port))]))
            }
        return FarSender(far, answer.note.numbers[0])
    }

    /// Calls `body` with a right to a port of the far side that is served there, on a thread of its own.
    func serving(
        queueLimit: Int = MachPort.defaultQueueLimit, _ service: Service, handingOnTo other: SendRight? = nil,
        _ body: (SendRight, FarPort) throws -> Void
    ) throws {
        let port = try farPort(queueLimit: queueLimit, service, handingOnTo: other, isServed: true)
        try body(try right(to: port), port)
    }

    /// Kills the process of the far side. The test says that it ends so.
    func killFarSide() throws {
        try #require(transport == .process)
        let error = #expect(throws: PortError.self) { try far.order(Order(.die)) }
        #expect(error?.code == .peerDied)
    }

    /// How many descriptors the process of the far side has.
    func farDescriptorCount() throws -> Int {
        try far.order(Order(.countDescriptors)).note.numbers[0]
    }
}

/// Runs a test of the contract on a thread of its own, which has a fresh run loop. If the far side is a process of its
/// own, that ends as the test expects.
func onBench(
    over transport: TestTransport, endsAs end: ProcessEnd = .exited(0),
    sourceLocation: SourceLocation = #_sourceLocation, _ body: @escaping @Sendable (Bench) throws -> Void
) async throws {
    try await withScratchDirectory(sourceLocation: sourceLocation) { scratch in
        try await onNewThread(sourceLocation: sourceLocation) {
            let ports = scratch.path("ports")
            switch transport {
            case .memory: try onBench(.memory, ports, FarSide(directory: nil), body)
            case .socket, .ring: try onBench(transport, ports, FarSide(directory: .open(path: ports)), body)
            case .process: try onBenchBesideProcess(ports, scratch.path("names"), end, sourceLocation, body)
            }
        }
    }
}

/// The far side is in this process.
private func onBench(
    _ transport: TestTransport, _ ports: String, _ side: FarSide, _ body: @Sendable (Bench) throws -> Void
) throws {
    defer { side.end() }
    let link = FarLink { side.carryOut($0) }
    try body(Bench(transport: transport, directory: .open(path: ports), far: link))
}

/// The far side is another process, which ends by itself.
private func onBenchBesideProcess(
    _ ports: String, _ names: String, _ end: ProcessEnd, _ sourceLocation: SourceLocation,
    _ body: @Sendable (Bench) throws -> Void
) throws {
    let process = try ChildProcess(builtProduct("port-test-peer"), ["far", names, "far", ports])
    try process.beside(endsAs: end, "the far side", sourceLocation: sourceLocation) {
        try #require(try process.nextLine(sourceLocation: sourceLocation) == "ready", sourceLocation: sourceLocation)
        let orders = try PortNameServer(directory: names).lookUp("far")
        let link = FarLink { order in try Parcel(unpacking: orders.ask(order.packed)) }
        try body(Bench(transport: .process, directory: .open(path: ports), far: link))
    }
}
