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

    static let workerVariable = "PORTCTL_BENCH"

    /// Starts the other process, which echoes what it gets; `variables` are added to its environment.
    static func launchWorker(
        _ variables: [String: String?] = [:], standardError: SharedDescriptor? = nil
    ) throws -> PortWorker {
        var program = WorkerProgram("/proc/self/exe", ["bench"])
        program.standardError = standardError
        program.environment = variables.merging([workerVariable: "1"]) { own, _ in own }
        return try PortWorker.launchProcess(program)
    }

    /// What the other process does: echoes what it gets.
    static func serve(_ launcher: SendRight) throws {
        let port = echoPort()
        try port.schedule(on: .main)
        try launcher.notifyWhenDead(on: .main) { _ in ThreadRunLoop.main.stop() }
        try launcher.checkIn(port)
        ThreadRunLoop.main.run()
    }

    /// Runs all checks, and ends the worker.
    func run(worker: PortWorker) throws -> [CheckResult] {
        let other = try worker.checkIn(within: limit)
        let thread = try ResidentThread(name: "bench")
        defer { thread.stop() }
        let near = Self.echoPort()
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
                if reply.descriptors.count != 1 { throw Refusal.check("a descriptor was lost") }
            })
        results.append(try names())
        near.invalidate()
        try worker.shutDown()
        return results
    }

    /// A port that replies with what it gets.
    static func echoPort() -> MachPort {
        MachPort { _, message in
            if message.expectsReply { try? message.reply(MachMessage(id: message.id, components: message.components)) }
        }
    }

    private let limit = Tuning.answerLimit
    private let small = MachMessage(id: 1, bytes: [UInt8](repeating: 7, count: 32))
    private static let large = MachMessage(id: 1, bytes: [UInt8](repeating: 7, count: 1 << 20))

    private func echo(_ message: MachMessage, _ right: SendRight) throws {
        let reply = try right.request(message, sendLimit: limit, replyLimit: limit)
        if reply.bytes != message.bytes { throw Refusal.check("a reply is not what was sent") }
    }

    /// Registers a name, looks it up, and frees it.
    private func names() throws -> CheckResult {
        let port = MachPort()
        defer { port.invalidate() }
        let name = "portctl.bench.\(PeerIdentity.current.processID)"
        let own = port.makeSendRight()
        return try check("name: register, look up, free") {
            try server.register(port, name: name)
            if try server.lookUp(name) != own { throw Refusal.check("a name leads elsewhere") }
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

/// The result of a check.
struct CheckResult: Equatable {
    let name: String
    /// How often it was done, and how long all repetitions took.
    let count: Int
    let duration: Duration
    /// How many bytes were sent each time, where the result is a throughput.
    var bytes = 0

    private var each: Duration { count > 0 ? duration / count : .zero }

    /// Bytes per second, or the duration of one repetition.
    var shown: String {
        if bytes == 0 { return each.shown }
        return Int(Double(bytes * count) / max(1e-9, duration / .seconds(1))).shownAsSize + "/s"
    }

    var json: JSONValue {
        .object([
            ("check", .text(name)), ("times", .number(count)),
            ("nanosecondsEach", .number(Int(each / .nanoseconds(1)))),
            ("bytesEach", .number(bytes)),
        ])
    }
}
