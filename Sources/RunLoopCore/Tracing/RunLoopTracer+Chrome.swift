// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// The trace-event format of Chrome's tracing, which Perfetto and other viewers open: an object with a list of events.
// Runs, callouts and waits are pairs of "B" and "E", activities are instants "i", the names of threads are metadata
// "M". Times are microseconds of the monotonic clock.

public import PortSystem

extension RunLoopTracer {
    /// The trace as JSON, for Perfetto (<https://ui.perfetto.dev>) or `chrome://tracing`.
    public var chromeTrace: String {
        var bytes: [UInt8] = []
        forEachPieceOfChromeTrace { bytes += $0 }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Writes ``chromeTrace``, piece by piece. Waits while the descriptor accepts no more data.
    ///
    /// - Parameter descriptor: where to write; it remains the caller's.
    /// - Throws: the kernel's error: `EBADF` when it is not open for writing, `ENOSPC` on a full disk, `EPIPE` when it
    ///   has no reader (without a `SIGPIPE`), and so on. Part of the trace may have been written then.
    public func writeChromeTrace(to descriptor: CInt) throws(SystemError) {
        try withoutBrokenPipeSignal { () throws(SystemError) in
            var failure: SystemError?
            forEachPieceOfChromeTrace { piece in
                if failure != nil { return }
                do throws(SystemError) {
                    try Self.write(piece, to: descriptor)
                } catch {
                    failure = error
                }
            }
            if let failure { throw failure }
        }
    }

    private static func write(_ bytes: [UInt8], to descriptor: CInt) throws(SystemError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            if let count = try sysWrite(descriptor, rest) {
                rest = rest.dropFirst(count)
            } else {
                _ = try sysPoll(descriptor, .writable, until: .distantFuture)
            }
        }
    }

    private func forEachPieceOfChromeTrace(_ body: ([UInt8]) -> Void) {
        let processID = sysProcessID()
        var bytes = Array("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n".utf8)
        var isFirst = true
        func append(_ value: JSONValue) {
            if !isFirst { bytes += ",\n".utf8 }
            isFirst = false
            value.append(to: &bytes)
            if bytes.count >= 65_536 {
                body(bytes)
                bytes.removeAll(keepingCapacity: true)
            }
        }
        for recording in recordings {
            append(.threadName(recording.threadName, process: processID, thread: recording.threadID))
        }
        for event in events { append(event.chromeEvent(process: processID)) }
        body(bytes + "\n]}\n".utf8)
    }
}

extension JSONValue {
    fileprivate static func threadName(_ name: String, process: Int32, thread: Int32) -> JSONValue {
        .object([
            ("ph", .text("M")), ("name", .text("thread_name")), ("pid", .number(process)), ("tid", .number(thread)),
            ("args", .object([("name", .text(name))])),
        ])
    }
}

extension RunLoopTraceEvent {
    fileprivate func chromeEvent(process: Int32) -> JSONValue {
        .object(
            phase + [
                ("ts", .number(TraceTime.microseconds(time.nanoseconds))), ("pid", .number(process)),
                ("tid", .number(threadID)), ("args", .object(details)),
            ])
    }

    /// Phase, category and name. An end needs no name: it ends the event that began last.
    private var phase: [(String, JSONValue)] {
        switch kind {
        case .runBegin: Self.begin("run", "run in \(mode)")
        case .calloutBegin(let callout): Self.begin(callout.kind.description, callout.description)
        case .waitBegin(let limit): Self.begin("wait", limit == .distantPast ? "look" : "wait")
        case .activity(let activity):
            [("ph", .text("i")), ("s", .text("t")), ("cat", .text("activity")), ("name", .text(activity.description))]
        case .runEnd: [("ph", .text("E")), ("cat", .text("run"))]
        case .calloutEnd(let callout): [("ph", .text("E")), ("cat", .text(callout.kind.description))]
        case .waitEnd: [("ph", .text("E")), ("cat", .text("wait"))]
        }
    }

    private static func begin(_ category: String, _ name: String) -> [(String, JSONValue)] {
        [("ph", .text("B")), ("cat", .text(category)), ("name", .text(name))]
    }

    private var details: [(String, JSONValue)] {
        switch kind {
        case .runBegin(let limit), .waitBegin(let limit):
            [("mode", .text(mode.rawValue)), ("until", .text(Self.text(of: limit)))]
        case .runEnd(let result): [("result", .text(result.map { "\($0)" } ?? "not seen"))]
        case .activity(let activity): [("mode", .text(mode.rawValue)), ("value", .number(activity.rawValue))]
        case .calloutBegin: [("mode", .text(mode.rawValue))]
        case .calloutEnd: []
        case .waitEnd(let cause, let slept):
            [("ended by", .text(cause.map { "\($0)" } ?? "not seen")), ("slept", .flag(slept))]
        }
    }
}
