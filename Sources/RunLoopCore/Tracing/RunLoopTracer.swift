// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import PortSystem
import Synchronization

/// Records what run loops do: runs, activities, callouts and waits, with their times.
///
/// A tracer is attached to one or more loops, also while they run. It stores the newest ``capacity`` events of each;
/// the memory for them, about 100 bytes an event, is allocated when a loop is attached. Recording an event costs one
/// reading of the clock and three locks that no thread holds for long, no memory and no other system call. A loop
/// without a tracer pays one relaxed load for each activity, callout and wait.
///
/// The events are stored until the tracer is released, also when the loop's thread ends. A tracer that is released
/// detaches itself. An optimized build may release it after its last use, which is mostly the one that reads the
/// events.
///
/// - Important: Thread safety: any thread.
public final class RunLoopTracer: Sendable {
    /// How many events of a loop are stored, unless another number is given.
    public static let defaultCapacity = 16_384
    /// The most events of a loop that can be stored.
    public static let maximumCapacity = 1_048_576

    private let attachments = Mutex<[TraceRecording]>([])

    /// How many events of each loop are stored.
    public let capacity: Int

    /// The process whose loops are recorded.
    private let processID = sysProcessID()  // immutable

    /// Makes a tracer that is attached to nothing.
    ///
    /// - Parameter capacity: how many events of each loop to store: 1 to ``maximumCapacity``, or the call traps.
    public init(capacity: Int = defaultCapacity) {
        if !(1...Self.maximumCapacity).contains(capacity) {
            fatalError(
                "A tracer keeps 1 to \(Self.maximumCapacity) events of a loop, not \(capacity). Choose a capacity in that range."
            )
        }
        self.capacity = capacity
    }

    deinit {
        for recording in recordings { recording.loop?.remove(recording) }
    }

    /// Records what a loop does from now on, until ``detach(from:)``. Attaching twice changes nothing, and a loop whose
    /// thread has ended records nothing.
    ///
    /// - Parameter loop: the loop.
    public func attach(to loop: ThreadRunLoop) {
        if loop.hasEnded { return }
        attachments.withLock { attachments in
            let known = attachments.first { $0.loop === loop }
            let recording = known ?? TraceRecording(of: loop, capacity: capacity)
            if known == nil { attachments.append(recording) }
            recording.open()
            loop.add(recording)
        }
    }

    /// Stops recording a loop. Recorded events stay; whatever is in progress ends here in the trace.
    ///
    /// - Parameter loop: the loop.
    public func detach(from loop: ThreadRunLoop) {
        attachments.withLock { attachments in
            guard let recording = attachments.first(where: { $0.loop === loop }) else { return }
            loop.remove(recording)
            recording.close()
        }
    }

    /// How many events were recorded and are no longer stored, of all loops.
    public var droppedCount: Int { recordings.reduce(0) { $0 + $1.droppedCount } }

    /// The events of all loops, oldest first. Within each loop, every begin has its end, and they nest: whatever is in
    /// progress ends at the time of the call, and ends whose begin was not recorded, or is no longer stored, are left
    /// out.
    public var events: [RunLoopTraceEvent] {
        let all = recordings.map(\.events)
        if all.count == 1 { return all[0] }
        // Stable, so the order within each loop is preserved.
        return Array(all.joined()).enumerated()
            .sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }.map(\.element)
    }

    var recordings: [TraceRecording] {
        attachments.withLock { $0 }
    }
}

// MARK: - Chrome

// The trace-event format of Chrome's tracing, which Perfetto and other viewers open: an object with a list of events.
// Runs, callouts and waits are pairs of "B" and "E", activities are instants "i", the names of threads are metadata
// "M". Times are microseconds of the monotonic clock.
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
    @available(*, noasync, message: "It blocks the thread. Use `chromeTrace`, and write it as the task does.")
    public func writeChromeTrace(to descriptor: CInt) throws(SystemError) {
        try withoutBrokenPipeSignal { () throws(SystemError) in
            try forEachPieceOfChromeTrace { (piece) throws(SystemError) in try Self.write(piece, to: descriptor) }
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

    private func forEachPieceOfChromeTrace<Failure: Error>(
        _ body: ([UInt8]) throws(Failure) -> Void
    ) throws(Failure) {
        var bytes = Array("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n".utf8)
        var isFirst = true
        func append(_ value: JSONValue) throws(Failure) {
            if !isFirst { bytes += ",\n".utf8 }
            isFirst = false
            value.append(to: &bytes)
            if bytes.count >= Tuning.tracePieceSize {
                try body(bytes)
                bytes.removeAll(keepingCapacity: true)
            }
        }
        for recording in recordings {
            try append(.threadName(recording.threadName, process: processID, thread: recording.threadID))
        }
        for event in events { try append(event.chromeEvent(process: processID)) }
        try body(bytes + "\n]}\n".utf8)
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
                ("ts", .number(Self.microseconds(time.nanoseconds))), ("pid", .number(process)),
                ("tid", .number(threadID)), ("args", .object(details)),
            ])
    }

    /// Phase, category and name. An end needs no name: it ends the event that began last.
    private var phase: [(String, JSONValue)] {
        switch kind {
        case .runBegin: Self.begin("run", "run in \(mode)")
        case .calloutBegin(let callout): Self.begin(callout.kind.description, callout.description)
        case .waitBegin(let limit): Self.begin("wait", limit == .distantPast ? "poll" : "wait")
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

// MARK: - Text

extension RunLoopTracer {
    /// The activities of the loops and the handlers that they called, one line each: seconds of the monotonic clock,
    /// process and thread, and what happened. Handlers of observers, runs and waits are left out; nested runs are
    /// indented.
    ///
    /// ```text
    /// 5063.584045 [4707:559984] afterWaiting (64)
    /// 5063.584247 [4707:559984] timer "tick" #1
    /// 5063.584424 [4707:559984] beforeTimers (2)
    /// ```
    public var activityTrace: String {
        lines(of: events.filter(\.isActivityOrHandler))
    }

    /// Every event, one line each: as ``activityTrace``, and also the handlers of observers, runs and waits, and ends.
    public var text: String {
        lines(of: events)
    }

    private func lines(of events: [RunLoopTraceEvent]) -> String {
        events.map { $0.line(ofProcess: processID) + "\n" }.joined()
    }
}

extension RunLoopTraceEvent {
    fileprivate var isActivityOrHandler: Bool {
        switch kind {
        case .activity: true
        case .calloutBegin(let callout): callout.kind != .observer
        case .runBegin, .runEnd, .calloutEnd, .waitBegin, .waitEnd: false
        }
    }

    fileprivate func line(ofProcess processID: Int32) -> String {
        let indentation = String(repeating: "  ", count: max(0, depth - 1))
        return "\(Self.seconds(time)) [\(processID):\(threadID)] \(indentation)\(self)"
    }
}
