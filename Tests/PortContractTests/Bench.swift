// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// What a test of the contract works with: the transport, a directory for the sockets, and the far side.
struct Bench: Sendable {
    let transport: TestTransport
    let directory: PortDirectory
    let far: FarLink

    /// A port. Over sockets it has an address from the start, so that rights to it can travel.
    ///
    /// With `acceptsInBackground` false only the threads that receive for the port accept clients: a peer policy of the
    /// program's is asked there.
    func port(
        queueLimit: Int = MachPort.defaultQueueLimit, policy: QueuePolicy = .refuse, acceptsInBackground: Bool = true,
        _ handler: MachPort.Handler? = nil
    ) throws -> MachPort {
        let port = MachPort(queueLimit: queueLimit, queuePolicy: policy, handler: handler)
        if !acceptsInBackground { port.setPeerPolicy(PeerPolicy { _ in true }) }
        if transport != .memory { _ = try port.localPort.address(in: directory) }
        return port
    }

    /// A right to the port. Over sockets each call makes a connection.
    func right(to port: MachPort) throws -> SendRight {
        switch transport {
        case .memory: port.makeSendRight()
        case .socket, .process: SendRight(try connect(to: port.localPort.address(in: directory)))
        case .ring: SendRight(try connectWithRings(to: port))
        case .name: SendRight(ReconnectingPort(LastOwner(address: try port.localPort.address(in: directory))))
        }
    }

    private func connectWithRings(to port: MachPort) throws -> RemotePort {
        let remote = try connect(to: port.localPort.address(in: directory))
        port.agreeOnRings(with: try remote.reached())
        return remote
    }

    /// A connection of its own. One within this process offers rings with its first message, or never; one to another
    /// process as the environment says.
    func connect(to address: PortAddress) throws -> RemotePort {
        let remote = try #require(try RightsTable.connect(to: address))
        if transport != .process { try remote.reached().useRings(transport == .ring ? .always : .never) }
        return remote
    }

    /// A port whose queue, and every buffer on the way to it, are full; a right to it; and how many messages that took,
    /// with the ids 0, 1, 2 and so on.
    func full(queueLimit: Int = 1) throws -> (port: MachPort, right: SendRight, count: Int32) {
        let port = try port(queueLimit: queueLimit)
        let right = try right(to: port)
        return (port, right, try right.fill(bytes: 3000))
    }

    /// Calls `body` with a right to a port that is served on a thread of its own.
    func serving(
        queueLimit: Int = MachPort.defaultQueueLimit, _ handler: @escaping MachPort.Handler,
        _ body: (SendRight, MachPort, Worker) throws -> Void
    ) throws {
        let port = try port(queueLimit: queueLimit, handler)
        let worker = Worker()
        defer { port.invalidate() }
        let result = Result {
            try port.schedule(on: worker.loop)
            try body(try right(to: port), port, worker)
        }
        try worker.end()
        try result.get()
    }

    // MARK: The far side

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
        case .name: SendRight(ReconnectingPort(LastOwner(address: try port.address())))
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
            case .socket, .process, .name:
                try far.order(Order(.connect, texts: [port.localPort.address(in: directory).path]))
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

/// Finds the port of a test, and no other one after it.
private struct LastOwner: PortFinder {
    let name = "test"
    let address: PortAddress

    func find() throws(PortError) -> SendRight? {
        guard let port = try RightsTable.connect(to: address) else { return nil }
        try port.reached().useRings(.never)
        return SendRight(port)
    }

    func search(
        after date: MonotonicInstant, isForSender: Bool,
        _ didFind: @escaping @Sendable (Result<SendRight, PortError>) -> Void
    ) -> Cancellation { {} }
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
            case .socket, .ring, .name: try onBench(transport, ports, FarSide(directory: .open(path: ports)), body)
            case .process: try onBenchBesideProcess(ports, scratch.path("names"), end, sourceLocation, body)
            }
        }
    }
}

/// The far side is in this process.
private func onBench(
    _ transport: TestTransport, _ ports: String, _ side: FarSide, _ body: @Sendable (Bench) throws -> Void
) throws {
    defer {
        side.end()
        if transport == .name { waitUntilEndsAreKnown() }
    }
    let link = FarLink { side.carryOut($0) }
    try body(Bench(transport: transport, directory: .open(path: ports), far: link))
}

extension Bench {
    /// Calls `body` with a far side that is one process more.
    func besideAnotherProcess(endsAs end: ProcessEnd = .exited(0), _ body: @Sendable (Bench) throws -> Void) throws {
        try onBenchBesideProcess(directory.path, directory.path + "-names", end, #_sourceLocation, body)
    }
}

/// A right to a name watches the process of a port that has ended without a reason, for a moment.
private func waitUntilEndsAreKnown() {
    let deadline = Watchdog.deadline
    while openDescriptors().contains(where: { $0.contains("pidfd") }), .now < deadline { yieldThread() }
}

/// The far side is another process, which ends by itself.
private func onBenchBesideProcess(
    _ ports: String, _ names: String, _ end: ProcessEnd, _ sourceLocation: SourceLocation,
    _ body: @Sendable (Bench) throws -> Void
) throws {
    let process = try ChildProcess(builtProduct("port-test-peer"), ["unlimited", "far", names, "far", ports])
    try process.beside(endsAs: end, "the far side", sourceLocation: sourceLocation) {
        try #require(try process.nextLine(sourceLocation: sourceLocation) == "ready", sourceLocation: sourceLocation)
        let orders = try PortNameServer(directory: names).lookUp("far")
        let link = FarLink { order in try Parcel(unpacking: orders.ask(order.packed)) }
        try body(Bench(transport: .process, directory: .open(path: ports), far: link))
    }
}

extension SendRight {
    /// Sends, with the watchdog's limit.
    func send(_ message: MachMessage) throws(PortError) {
        try send(message, within: longTimeout)
    }

    /// Asks, with the watchdog's limit.
    func ask(_ message: MachMessage, mode: RunLoopMode = .portReply) throws(PortError) -> MachMessage {
        try request(message, sendLimit: longTimeout, replyLimit: longTimeout, mode: mode)
    }

    /// Sends messages until the queue, and the buffers on the way, are full.
    ///
    /// - Returns: how many were sent; their ids are 0, 1, 2 and so on.
    func fill(bytes: Int = 0) throws(PortError) -> Int32 {
        Int32(try sendUntilFull(bytes: bytes))
    }
}

extension SendLock {
    /// Waits until a sender holds the lock, and waits for something itself.
    func waitUntilHolderBlocks() {
        let deadline = Watchdog.deadline
        while lockUnlessHolderBlocks() {
            unlock()
            if .now >= deadline { return Watchdog.expired("no sender waits") }
            yieldThread()
        }
    }
}

extension MachPort {
    /// Has a new connection offer rings, and both ends accept them; later, when the port reads nothing now.
    fileprivate func agreeOnRings(with connection: SocketConnection) {
        guard connection.sender.lock.tryLock() else { return }
        connection.offerRingsIfDue()
        connection.sender.lock.unlock()
        for _ in 0..<100 where connection.awaitsRingAnswer {
            localPort.receiveFromSockets()
            connection.receiveUnlessReceiving()
        }
        waitUntilDescriptorsAreClosed()
    }

    /// The next message, with the watchdog's limit.
    func next(sourceLocation: SourceLocation = #_sourceLocation) throws -> MachMessage {
        try #require(try receive(within: longTimeout), sourceLocation: sourceLocation)
    }
}

/// Waits until what came from peers and was released is closed: the file of a ring's memory, say.
func waitUntilDescriptorsAreClosed() {
    let deadline = Watchdog.deadline
    while !AsyncCloser.isIdle, .now < deadline { yieldThread() }
}
