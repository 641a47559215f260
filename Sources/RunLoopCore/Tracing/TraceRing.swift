// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// The last events of a loop, in memory that is allocated once.
///
/// Events are numbered from 0; the number is their position.
struct TraceRing: Sendable {
    /// A moment at which recording stopped: whatever was in progress has no end in the trace.
    struct Cut: Sendable {
        /// The position of the first event after it.
        var position: Int
        var time: MonotonicInstant
    }

    private var slots: [RunLoopTraceEvent?]
    private var isOpen = false
    private var openingTime = MonotonicInstant.distantPast
    /// How many events were recorded, including those that were overwritten.
    private(set) var count = 0
    private(set) var cuts: [Cut] = []

    init(capacity: Int) {
        slots = Array(repeating: nil, count: capacity)
    }

    /// The position of the oldest event that is still stored.
    var firstPosition: Int { max(0, count - slots.count) }

    /// Starts or resumes recording.
    mutating func open(at time: MonotonicInstant) {
        if isOpen { return }
        isOpen = true
        openingTime = max(time, cuts.last?.time ?? time)
    }

    /// Stops recording.
    mutating func close(at time: MonotonicInstant) {
        guard isOpen else { return }
        isOpen = false
        let first = firstPosition
        cuts.removeAll { $0.position <= first }
        cuts.append(Cut(position: count, time: max(time, lastTime)))
    }

    /// Records an event, over the oldest one when there is no room. An event from before recording began is left out:
    /// the loop was about to report it when recording stopped and began again.
    mutating func append(_ event: RunLoopTraceEvent) {
        guard isOpen, event.time >= openingTime else { return }
        slots[count % slots.count] = event
        count += 1
    }

    /// Copies events.
    ///
    /// - Parameters:
    ///   - position: of the first one; when it is gone, the oldest stored event is the first.
    ///   - limit: the most events to copy.
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
