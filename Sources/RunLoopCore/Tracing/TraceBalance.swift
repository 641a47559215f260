// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// Makes traces well-formed: every begin has its end, and they nest.
///
/// A trace may begin or end while something is in progress, and the oldest events may be gone. Ends without a begin are
/// left out. Begins without an end get one: where the trace stops, or where the enclosing event ends.
enum TraceBalance {
    /// The events of one loop, well-formed.
    ///
    /// - Parameters:
    ///   - events: the recorded events, in order.
    ///   - position: of the first of them.
    ///   - cuts: where recording stopped.
    ///   - time: when whatever is still in progress should end.
    /// - Returns: the events, of which each begin has its end.
    static func balanced(
        _ events: [RunLoopTraceEvent], from position: Int, cuts: [TraceRing.Cut], endingAt time: MonotonicInstant
    ) -> [RunLoopTraceEvent] {
        var balance = Balance()
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

    private struct Balance {
        var events: [RunLoopTraceEvent] = []
        private var open: [RunLoopTraceEvent] = []

        mutating func append(_ event: RunLoopTraceEvent) {
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

        mutating func close(downTo count: Int = 0, at time: MonotonicInstant) {
            while open.count > count, let begin = open.popLast() {
                if let end = begin.end(at: max(time, begin.time)) { events.append(end) }
            }
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
