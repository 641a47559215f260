// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

extension Invocation {
    /// Checks that ports work here, and measures how fast.
    func bench() throws {
        if let launcher = try SendRight.bootstrap(), sysEnvironment(Self.workerVariable) != nil {
            return try serveBench(launcher)
        }
        let showsProgress = Console.isTerminal && !has("--json")
        let checks = Checks(
            span: has("--quick") ? .milliseconds(100) : .milliseconds(1200), showsProgress: showsProgress,
            server: try nameServer())
        let results = try checks.run(worker: Self.launchWorker())
        let table = Table(
            columns: [
                .init(title: "CHECK"), .init(title: "RESULT", isRight: true), .init(title: "TIMES", isRight: true),
            ],
            rows: results.map { [$0.name, $0.shown, "\($0.count)"] })
        try write(table, json: .array(results.map(\.json)))
    }

    private static let workerVariable = "PORTCTL_BENCH"

    /// Starts the other process, which echoes what it gets; `variables` are added to its environment.
    static func launchWorker(
        _ variables: [String: String?] = [:], standardError: SharedDescriptor? = nil
    ) throws -> PortWorker {
        var program = WorkerProgram("/proc/self/exe", ["bench"])
        program.standardError = standardError
        program.environment = variables.merging([workerVariable: "1"]) { own, _ in own }
        return try PortWorker.launchProcess(program)
    }

    /// The other process of the checks: echoes what it gets.
    private func serveBench(_ launcher: SendRight) throws {
        let port = MachPort { _, message in
            if message.expectsReply { try? message.reply(MachMessage(id: message.id, components: message.components)) }
        }
        try port.schedule(on: .main)
        try launcher.notifyWhenDead(on: .main) { ThreadRunLoop.main.stop() }
        try launcher.checkIn(port)
        ThreadRunLoop.main.run()
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
        if bytes == 0 { return Human.text(each) }
        return Human.text(byteCount: Int(Double(bytes * count) / max(1e-9, duration / .seconds(1)))) + "/s"
    }

    var json: JSONValue {
        .object([
            ("check", .text(name)), ("times", .number(count)),
            ("nanosecondsEach", .number(Int(each / .nanoseconds(1)))),
            ("bytesEach", .number(bytes)),
        ])
    }
}
