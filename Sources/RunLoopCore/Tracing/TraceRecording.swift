// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// What a tracer has recorded of one loop. It outlives the loop and the thread.
final class TraceRecording: RunLoopInstrument {
    weak let loop: ThreadRunLoop?
    let threadID: Int32  // immutable
    let threadName: String  // immutable
    private let buffer: Mutex<TraceBuffer>  // taken on the loop's thread for each event

    init(of loop: ThreadRunLoop, capacity: Int) {
        self.loop = loop
        threadID = loop.threadID
        threadName =
            sysReadText("/proc/self/task/\(loop.threadID)/comm").map { String($0.unicodeScalars.prefix { $0 != "\n" }) }
            ?? "thread \(loop.threadID)"
        buffer = Mutex(TraceBuffer(capacity: capacity))
    }

    func open() {
        buffer.withLock { $0.open(at: .now) }
    }

    func close() {
        buffer.withLock { $0.close(at: .now) }
    }

    func note(_ event: RunLoopTraceEvent) {
        buffer.withLock { $0.append(event) }
    }

    func loopFallsIdle(at time: MonotonicInstant) {}

    func loopDidEnd() {
        close()
    }

    /// How many events were overwritten.
    var droppedCount: Int { buffer.withLock { $0.firstPosition } }

    /// The events that are stored now, in which each begin has its end.
    var events: [RunLoopTraceEvent] {
        var copied: [RunLoopTraceEvent] = []
        let (start, end) = buffer.withLock { ($0.firstPosition, $0.count) }
        var next = start
        var position = start
        while position < end {
            let limit = min(Tuning.eventsPerCopy, end - position)
            let (piece, first) = buffer.withLock { $0.copy(from: position, limit: limit) }
            if first != position {
                // The loop was faster: the events before the gap are gone from the buffer too.
                copied = []
                next = first
            }
            copied += piece
            position = first + piece.count
        }
        let cuts = buffer.withLock { $0.cuts }
        return TraceBalance.balanced(copied, from: next, cuts: cuts, endingAt: .now)
    }
}

/// The last events of a loop, in memory that is allocated once.
///
/// Events are numbered from 0; the number is their position.
struct TraceBuffer: Sendable {
    /// A moment at which recording stopped, and the position of the first event after it: whatever was in progress has
    /// no end in the trace.
    typealias Stop = (position: Int, time: MonotonicInstant)

    private var slots: [RunLoopTraceEvent?]
    /// Since when it records; nil when it does not.
    private var openingTime: MonotonicInstant?
    /// How many events were recorded, including those that were overwritten.
    private(set) var count = 0
    private(set) var cuts: [Stop] = []

    init(capacity: Int) {
        slots = Array(repeating: nil, count: capacity)
    }

    /// The position of the oldest event that is still stored.
    var firstPosition: Int { max(0, count - slots.count) }

    /// Starts or resumes recording.
    mutating func open(at time: MonotonicInstant) {
        if openingTime == nil { openingTime = max(time, cuts.last?.time ?? time) }
    }

    mutating func close(at time: MonotonicInstant) {
        if openingTime == nil { return }
        openingTime = nil
        let first = firstPosition
        cuts.removeAll { $0.position <= first }
        cuts.append((count, max(time, lastTime)))
    }

    /// Records an event, over the oldest one when there is no room. An event from before recording began is left out:
    /// the loop was about to report it when recording stopped and began again.
    mutating func append(_ event: RunLoopTraceEvent) {
        guard let openingTime, event.time >= openingTime else { return }
        slots[count % slots.count] = event
        count += 1
    }

    /// Copies at most `limit` events from a position on; when the event there is gone, from the oldest stored one on.
    ///
    /// - Returns: the events, and the position of the first of them.
    func copy(from position: Int, limit: Int) -> (events: [RunLoopTraceEvent], first: Int) {
        let first = max(position, firstPosition)
        let end = min(count, first + limit)
        return ((first..<max(first, end)).compactMap { slots[$0 % slots.count] }, first)
    }

    private var lastTime: MonotonicInstant {
        count == 0 ? .distantPast : slots[(count - 1) % slots.count]?.time ?? .distantPast
    }
}

/// Makes traces well-formed: every begin has its end, and they nest.
///
/// A trace may begin or end while something is in progress, and the oldest events may be gone. Ends without a begin are
/// left out. Begins without an end get one: where the trace stops, or where the enclosing event ends.
struct TraceBalance {
    private var events: [RunLoopTraceEvent] = []
    private var open: [RunLoopTraceEvent] = []

    /// The events of one loop, in order and well-formed: from the recorded ones, the position of the first of them, and
    /// where recording stopped. Whatever is still in progress ends at `time`.
    static func balanced(
        _ events: [RunLoopTraceEvent], from position: Int, cuts: [TraceBuffer.Stop], endingAt time: MonotonicInstant
    ) -> [RunLoopTraceEvent] {
        var balance = TraceBalance()
        var cuts = cuts[...]
        for (offset, event) in events.enumerated() {
            while let cut = cuts.first, cut.position <= position + offset {
                balance.close(at: cut.time)
                cuts = cuts.dropFirst()
            }
            balance.append(event)
        }
        balance.close(at: cuts.last?.time ?? max(time, events.last?.time ?? time))
        return balance.events
    }

    private mutating func append(_ event: RunLoopTraceEvent) {
        switch event.kind {
        case .activity: break
        case .runBegin, .calloutBegin, .waitBegin: open.append(event)
        case .runEnd, .calloutEnd, .waitEnd:
            guard let index = open.lastIndex(where: { $0.span == event.span }) else { return }
            close(downTo: index + 1, at: event.time)
            open.removeLast()
        }
        events.append(event)
    }

    private mutating func close(downTo count: Int = 0, at time: MonotonicInstant) {
        while open.count > count, let begin = open.popLast() {
            if let end = begin.end(at: max(time, begin.time)) { events.append(end) }
        }
    }
}

extension RunLoopTraceEvent {
    /// The end of a begin that has none.
    fileprivate func end(at time: MonotonicInstant) -> RunLoopTraceEvent? {
        let kind: Kind
        switch self.kind {
        case .runBegin: kind = .runEnd(nil)
        case .calloutBegin(let callout): kind = .calloutEnd(callout)
        case .waitBegin: kind = .waitEnd(nil, slept: false)
        case .activity, .runEnd, .calloutEnd, .waitEnd: return nil
        }
        return RunLoopTraceEvent(time: time, threadID: threadID, mode: mode, depth: depth, kind: kind, span: span)
    }
}
