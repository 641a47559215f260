// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import Glibc
import NamedPortServer

/// What a child does while its system calls are counted. A profiler can also examine a stretch by itself.
enum CountedStretch: String {
    /// A stream of messages between threads, as `inproc.oneway.64`.
    case stream
    /// Round trips between threads that sleep, as `inproc.roundtrip.sleeping`.
    case roundTrip = "round-trip"
    /// Round trips with a process, as `ipc.roundtrip.sleeping`; the calls of one side.
    case processRoundTrip = "process-round-trip"
    /// A stream of messages to a process, as `ipc.oneway.64`; the calls of the sender.
    case processStream = "process-stream"
    /// A stream of messages of a process to this one, a thousand at a time; for profilers.
    case processSource = "process-source"
    /// As `inproc.roundtrip.busy`; for profilers.
    case busyRoundTrip = "busy-round-trip"
    /// As `ipc.roundtrip.busy`; for profilers.
    case busyProcessRoundTrip = "busy-process-round-trip"
    /// As `ipc.payload.1MiB`; for profilers.
    case payload
    /// As `ipc.payload.16MiB`; for profilers.
    case largePayload = "large-payload"
    /// As `process-round-trip`, with a loan of 1 MiB there; for profilers.
    case processLoan = "process-loan"
    /// As `ipc.loan.1MiB`, `ipc.loan.16MiB.filled` and `inproc.loan.1MiB`; for profilers.
    case loan
    case filledLoan = "filled-loan"
    case threadLoan = "thread-loan"
    /// As `ipc.request`; for profilers.
    case processRequest = "process-request"
    /// As `ipc.request.sleeping`; for profilers.
    case sleepingRequest = "sleeping-request"
    /// As `inproc.request`; for profilers.
    case request
    /// As `cf.request`; for profilers.
    case cfRequest = "cf-request"
    /// As `ports.scale` with 100,000 ports, and with ten; for profilers.
    case ports
    case fewPorts = "few-ports"
    /// As `connections.scale` with a thousand connections; for profilers.
    case connections
    /// As `round-trip` with an eventfd each.
    case bareRoundTrip = "bare-round-trip"
    /// As `process-round-trip` over a bare socket.
    case bareProcessRoundTrip = "bare-process-round-trip"
    /// As `process-stream` over a bare socket.
    case bareProcessStream = "bare-process-stream"

    /// Runs the stretch that the first argument names, as many times as the second says. With a third argument, the
    /// calls are counted here and reported over the socket; if that is not possible, nothing is done.
    static func run(_ arguments: [String]) throws {
        guard arguments.count >= 2, let stretch = CountedStretch(rawValue: arguments[0]), let count = Int(arguments[1])
        else { throw BenchmarkFailure("no such stretch") }
        let countsItself = arguments.count > 2
        if countsItself, bare_counter_open() == 0 { return }
        let contestant = try stretch.makeContestant()
        _ = try contestant.run(max(1, count / 10), nil)
        countsItself ? bare_counter_begin() : bare_calls_begin()
        _ = try contestant.run(count, nil)
        if countsItself {
            var report = [bare_counter_end(), Int64(count * stretch.messages)]
            send(Child.socket, &report, MemoryLayout<Int64>.stride * report.count, 0)
        } else {
            bare_calls_end(Int64(count * stretch.messages))
        }
        contestant.end()
    }

    /// How many messages an operation consists of.
    private var messages: Int {
        switch self {
        case .stream, .processStream, .processSource, .ports, .fewPorts, .connections, .bareProcessStream: 1
        // There and back. Each side handles both messages between processes.
        default: 2
        }
    }

    private func makeContestant() throws -> Contestant {
        switch self {
        case .stream: try .portSink()
        case .roundTrip: try .portPair(.blocking)
        case .processRoundTrip: try .portProcessPair(.blocking)
        case .processStream: try .portProcessStream()
        case .processSource: try .connections(ports: 1, children: 1)
        case .busyRoundTrip: try .portPair(.adaptive)
        case .busyProcessRoundTrip: try .portProcessPair(.adaptive)
        case .payload: try .portProcessPair(.adaptive, size: 1 << 20)
        case .largePayload: try .portProcessPair(.adaptive, size: 16 << 20)
        case .processLoan: try .loanPair(1 << 20, waiting: .blocking, on: .anywhere)
        case .loan: try .loanPair(1 << 20, on: .anywhere)
        case .filledLoan: try .loanPair(16 << 20, .shared, .all, on: .anywhere)
        case .threadLoan: try .loanThreadPair(1 << 20, on: .anywhere)
        case .processRequest: try .namedPort(.adaptive)
        case .sleepingRequest: try .namedPort(.blocking)
        case .request: try .portServer()
        case .cfRequest: try .cfMessagePort(on: .anywhere)
        case .ports: try .portField(100_000)
        case .fewPorts: try .portField(10)
        case .connections: try .connections(ports: 100, children: 10)
        case .bareRoundTrip: try .eventfdPair()
        case .bareProcessRoundTrip: try .socketPair(bare_packets)
        case .bareProcessStream: try .packetStream(batch: 1)
        }
    }

    /// The system calls per message, in a separate child, and how they were counted.
    func callsPerMessage(_ count: Int) throws -> (value: Double, way: String) {
        if let value = try countedByKernel(count) { return (value, "an event counter") }
        return (try countedByTracing(count / 5), "ptrace, which slows each call down")
    }

    /// Counts at full speed; nil where the kernel does not allow that.
    private func countedByKernel(_ count: Int) throws -> Double? {
        let child = try BareChild(bare_packets, .counted, texts: [rawValue, "\(count)", "itself"])
        defer { child.end() }
        var report: [Int64] = [0, 0]
        let size = MemoryLayout<Int64>.stride * report.count
        guard recv(child.socket, &report, size, 0) == size, report[0] >= 0 else { return nil }
        return Double(report[0]) / Double(report[1])
    }

    private func countedByTracing(_ count: Int) throws -> Double {
        var result = bare_call_count()
        let code = BareChild.withArguments(Child.arguments(.counted, [rawValue, "\(count)"])) {
            bare_calls_trace($0, &result)
        }
        if code != 0 { throw NotAvailable("ptrace: errno \(code)") }
        return Double(result.calls) / Double(max(1, result.messages))
    }
}
