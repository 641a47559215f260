// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// The assumptions of programs that use CFMessagePort: A1 to A32 of Docs/CFMessagePort.md. A test's name begins with the
// numbers of those that it shows. A `Transport` as argument runs a test over both transports within the process;
// `withServer` starts a server in another process.

import MessagePort
import NamedPortServer
import PortSystem
import TestSupport
import Testing

/// The transport from a client to a port of its own process.
enum Transport: String, CaseIterable, Sendable, CustomTestStringConvertible {
    /// In memory, as every client of the process.
    case memory
    /// Over a connection, as a client of another process.
    case socket

    var testDescription: String { rawValue }
}

extension NameFixture {
    /// A separate object for a client.
    func remote(_ name: String = "name", over transport: Transport) throws -> RemoteMessagePort {
        let right = try names.lookUp(name)
        if transport == .memory { return RemoteMessagePort(name: name, right: right) }
        let connected = try #require(try RightsTable.connect(to: right.destination.address()))
        return RemoteMessagePort(name: name, right: SendRight(connected))
    }

    /// A port with a name.
    func local(
        _ name: String = "name", queueLimit: Int = MachPort.defaultQueueLimit,
        _ handler: @escaping LocalMessagePort.Handler = { _, message in message.bytes.reversed() }
    ) throws -> LocalMessagePort {
        try LocalMessagePort(name: name, nameServer: names, queueLimit: queueLimit, handler: handler)
    }

    /// Calls `body` with a client of a port that a thread of its own serves.
    func serving(
        over transport: Transport, queueLimit: Int = MachPort.defaultQueueLimit,
        _ handler: @escaping LocalMessagePort.Handler = { _, message in message.bytes.reversed() },
        _ body: (RemoteMessagePort, LocalMessagePort, ThreadRunLoop) throws -> Void
    ) throws {
        let local = try local(queueLimit: queueLimit, handler)
        defer { local.invalidate() }
        try withLoopThread { loop in
            try local.schedule(on: loop)
            try body(try remote(over: transport), local, loop)
        }
    }
}

extension Trait where Self == LeakCheck {
    /// The leak check, for tests of named ports.
    static var ports: Self { .leakCheck(warmingUp: makeSpareDescriptor) }

    /// The same, for tests of what the I/O thread receives: the thread stays, with what its loop makes first.
    static var shared: Self {
        .leakCheck(settles: true, warmingUp: makeSpareDescriptor)
    }
}
