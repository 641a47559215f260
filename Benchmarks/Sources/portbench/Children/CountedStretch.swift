// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import NamedPortServer

/// What a child does while its system calls are counted. By itself it is something to look at with a profiler.
enum CountedStretch: String {
    /// A stream of messages between threads, as `inproc.oneway.64`.
    case stream
    /// Round trips between threads that sleep, as `inproc.roundtrip.sleeping`.
    case roundTrip = "round-trip"
    /// Round trips with a process, as `ipc.roundtrip.sleeping`; the calls of one side.
    case processRoundTrip = "process-round-trip"
    /// A stream of messages to a process, as `ipc.oneway.64`; the calls of the sender.
    case processStream = "process-stream"
    /// As `inproc.roundtrip.busy`; for profilers.
    case busyRoundTrip = "busy-round-trip"
    /// As `ipc.roundtrip.busy`; for profilers.
    case busyProcessRoundTrip = "busy-process-round-trip"
    /// As `ipc.payload.1MiB`; for profilers.
    case payload
    /// As `inproc.request`; for profilers.
    case request
    /// The same with an eventfd each.
    case bareRoundTrip = "bare-round-trip"
    /// The same over a bare socket.
    case bareProcessRoundTrip = "bare-process-round-trip"
    /// The same over a bare socket.
    case bareProcessStream = "bare-process-stream"

    /// Does the stretch that the arguments name, so many times.
    static func run(_ arguments: [String]) throws {
        guard arguments.count == 2, let stretch = CountedStretch(rawValue: arguments[0]), let count = Int(arguments[1])
        else { throw BenchmarkFailure("no such stretch") }
        let contestant = try stretch.makeContestant()
        _ = try contestant.run(max(1, count / 10), nil)
        bare_calls_begin()
        _ = try contestant.run(count, nil)
        bare_calls_end(Int64(count * stretch.messages))
        contestant.end()
    }

    /// How many messages an operation is.
    private var messages: Int {
        switch self {
        case .stream, .processStream, .bareProcessStream: 1
        // There and back. Of the two messages between processes, each side has to do with both.
        default: 2
        }
    }

    private func makeContestant() throws -> Contestant {
        switch self {
        case .stream: try .portSink()
        case .roundTrip: try .portPair(.blocking)
        case .processRoundTrip: try .portProcessPair(.blocking)
        case .processStream: try .portProcessStream()
        case .busyRoundTrip: try .portPair(.adaptive)
        case .busyProcessRoundTrip: try .portProcessPair(.adaptive)
        case .payload: try .portProcessPair(.adaptive, size: 1 << 20)
        case .request: try .portServer()
        case .bareRoundTrip: try .eventfdPair()
        case .bareProcessRoundTrip: try .socketPair(bare_packets)
        case .bareProcessStream: try .packetStream(batch: 1)
        }
    }

    /// Counts the system calls per message in a child of its own.
    func callsPerMessage(_ count: Int) throws -> Double {
        var result = bare_call_count()
        let code = BareChild.withArguments(Child.arguments(.counted, [rawValue, "\(count)"])) {
            bare_calls_trace($0, &result)
        }
        if code != 0 { throw BenchmarkFailure("ptrace: errno \(code)") }
        return Double(result.calls) / Double(max(1, result.messages))
    }
}
