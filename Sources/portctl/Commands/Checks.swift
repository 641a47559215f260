// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer
import Synchronization

/// The checks of `portctl bench`, by public functions only. A check that fails throws.
struct Checks {
    /// How long to do each.
    let span: Duration
    let showsProgress: Bool
    /// The name server for the check of names.
    let server: PortNameServer

    /// Runs all checks, and ends the worker.
    func run(worker: PortWorker) throws -> [CheckResult] {
        let other = try worker.checkIn(within: .seconds(10))
        let thread = try ResidentThread(name: "bench")
        defer { thread.stop() }
        let near = MachPort { _, message in
            if message.expectsReply { try? message.reply(MachMessage(id: message.id, components: message.components)) }
        }
        try near.schedule(on: thread.loop)
        let right = near.makeSendRight()
        var results = [
            try check("message to a thread") { try right.send(small, within: limit) },
            try check("request to a thread") { try echo(small, right) },
            try check("call on another run loop") { try thread.loop.performAndWait(within: limit) {} },
            try check("message to a process") { try other.send(small, within: limit) },
            try check("request to a process") { try echo(small, other) },
        ]
        var large = try check("1 MiB to a process and back") { try echo(Self.large, other) }
        large.bytes = 2 * Self.large.bytes.count
        results.append(large)
        let file = SharedDescriptor(try sysOpen("/dev/null", .reading))
        results.append(
            try check("descriptor to a process and back") {
                let reply = try other.request(
                    MachMessage(components: [.descriptor(file)]), sendLimit: limit, replyLimit: limit)
                if reply.descriptors.count != 1 { throw CheckFailure(name: "a descriptor was lost") }
            })
        results.append(try names())
        near.invalidate()
        try worker.shutDown()
        return results
    }

    private let limit = Duration.seconds(10)
    private let small = MachMessage(id: 1, bytes: [UInt8](repeating: 7, count: 32))
    private static let large = MachMessage(id: 1, bytes: [UInt8](repeating: 7, count: 1 << 20))

    private func echo(_ message: MachMessage, _ right: SendRight) throws {
        let reply = try right.request(message, sendLimit: limit, replyLimit: limit)
        if reply.bytes != message.bytes { throw CheckFailure(name: "a reply is not what was sent") }
    }

    /// Registers a name, looks it up, and frees it.
    private func names() throws -> CheckResult {
        let port = MachPort()
        defer { port.invalidate() }
        let name = "portctl.bench.\(PeerIdentity.current.processID)"
        let own = port.makeSendRight()
        return try check("name: register, look up, free") {
            try server.register(port, name: name)
            if try server.lookUp(name) != own { throw CheckFailure(name: "a name leads elsewhere") }
            server.unregister(name)
        }
    }

    /// Repeats an operation and measures it.
    private func check(_ name: String, _ body: () throws -> Void) throws -> CheckResult {
        if showsProgress { Console.note(name) }
        try body()  // one-time work is not counted
        let start = MonotonicInstant.now
        let end = start.advanced(by: span)
        var count = 0
        while true {
            for _ in 0..<8 { try body() }
            count += 8
            let now = MonotonicInstant.now
            if now >= end { return CheckResult(name: name, count: count, duration: start.duration(to: now)) }
        }
    }
}

/// A check has failed: ports do not work here as promised.
struct CheckFailure: Error, CustomStringConvertible {
    let name: String
    var description: String { "A check has failed: \(name)." }
}

/// The reason why a command is refused, found before it has begun.
struct Refusal: Error, CustomStringConvertible {
    let description: String

    init(_ sentence: String) {
        description = sentence
    }
}

extension Invocation {
    /// Shows what this system allows and refuses.
    ///
    /// - Returns: whether it refuses nothing that the library uses.
    func doctor() throws -> Bool {
        let findings = Doctor(directory: options["--directory"]).findings()
        let table = Table(columns: ProbeResult.columns, rows: findings.map(\.cells))
        try write(table, json: .array(findings.map(\.json))) { $0 == 0 ? .title : findings[$0 - 1].style }
        if !has("--json") {
            let advice = findings.compactMap(\.advice)
            let width = Console.width ?? 100
            try Console.write(
                advice.map { "\n" + Help.wrapped($0.shown, width: width).joined(separator: "\n") + "\n" }.joined())
        }
        return findings.allSatisfy { $0.state != .refused }
    }
}
