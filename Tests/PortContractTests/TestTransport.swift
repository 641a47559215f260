// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// One contract, three transports: each test runs over all, in one process. In memory a right is the port's own; over a
// socket it is a connection of its own, made as another process would make it; over a ring the connection has rings, from
// its first message on.

@testable import MessagePort
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// How a right reaches its port.
enum TestTransport: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case memory, socket, ring

    var testDescription: String { rawValue }
}

/// What a test of the contract works with: the transport, and a directory for the sockets.
struct Bench: Sendable {
    let transport: TestTransport
    let directory: PortDirectory

    /// A port. Over sockets it has an address from the start, so that rights to it can travel.
    func port(
        queueLimit: Int = MachPort.defaultQueueLimit, policy: QueuePolicy = .refuse, _ handler: MachPort.Handler? = nil
    ) throws -> MachPort {
        let port = MachPort(queueLimit: queueLimit, queuePolicy: policy, handler: handler)
        if transport != .memory { _ = try port.core.address(in: directory) }
        return port
    }

    /// A right to the port. Over sockets each call makes a connection.
    func right(to port: MachPort) throws -> SendRight {
        switch transport {
        case .memory: port.makeSendRight()
        case .socket: SendRight(try connect(to: port, .never))
        case .ring: SendRight(try connect(to: port, .always))
        }
    }

    private func connect(to port: MachPort, _ use: RingUse) throws -> RemotePort {
        let remote = try #require(try RightsTable.connect(to: port.core.address(in: directory)))
        remote.connection.useRings(use)
        if use == .always { port.agreeOnRings(with: remote.connection) }
        return remote
    }

    /// A port whose queue, and whatever lies on the way to it, are full; a right to it; and how many messages that took,
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
}

/// Runs a test of the contract on a thread of its own, which has a fresh run loop.
func onBench(
    over transport: TestTransport, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: @escaping @Sendable (Bench) throws -> Void
) async throws {
    try await withScratchDirectory(sourceLocation: sourceLocation) { scratch in
        try await onNewThread(sourceLocation: sourceLocation) {
            try body(Bench(transport: transport, directory: .open(path: scratch.path("ports"))))
        }
    }
}

/// How long a call of the library may wait: as long as the watchdog.
let patience = Watchdog.patience

/// The error that `body` throws; nil when it throws none.
func portError(_ body: () throws(PortError) -> Void) -> PortError? {
    do throws(PortError) {
        try body()
        return nil
    } catch {
        return error
    }
}

extension SendRight {
    /// Sends, with the watchdog's patience.
    func send(_ message: MachMessage) throws(PortError) {
        try send(message, within: patience)
    }

    /// Asks, with the watchdog's patience.
    func ask(_ message: MachMessage, mode: RunLoopMode = .portReply) throws(PortError) -> MachMessage {
        try request(message, sendLimit: patience, replyLimit: patience, mode: mode)
    }

    /// Sends messages until the queue, and the buffers on the way, are full.
    ///
    /// - Returns: how many were sent; their ids are 0, 1, 2 and so on.
    func fill(bytes: Int = 0) throws -> Int32 {
        // The limit of a queue and a socket's buffer are both far smaller.
        for id in Int32(0)..<1_000_000 {
            if try !trySend(MachMessage(id: id, bytes: [UInt8](repeating: 7, count: bytes))) { return id }
        }
        Issue.record("the queue never became full")
        return 0
    }
}

extension MachPort {
    /// Has a connection that was just made offer rings, and both ends take them; later, when the port reads nothing now.
    fileprivate func agreeOnRings(with connection: SocketConnection) {
        guard connection.turn.takeIfFree() else { return }
        connection.offerRings()
        connection.turn.give()
        for _ in 0..<100 where connection.awaitsRingAnswer {
            core.receiveFromSockets()
            connection.receiveUnlessReceiving()
        }
    }
}

extension MachPort {
    /// The next message, with the watchdog's patience.
    func next(sourceLocation: SourceLocation = #_sourceLocation) throws -> MachMessage {
        try #require(try receive(within: patience), sourceLocation: sourceLocation)
    }
}

extension Trait where Self == Census {
    /// The census, for tests that open sockets: the library keeps one spare descriptor for ever, and the thread that sends
    /// replies for which there was no room.
    static var contract: Self {
        .census(warmingUp: makeSharedReceiver)
    }
}

/// Makes what a process keeps once it has had sockets.
@Sendable func makeSharedReceiver() throws {
    SpareDescriptor.shared.keep()
    let loop = try SharedReceiver.loop()
    // What the loop makes when it first watches a descriptor in its mode, it keeps.
    let pipe = try TestPipe()
    let source = RunLoopSource(descriptor: pipe.reading.rawValue) {}
    loop.add(source)
    source.invalidate()
}
