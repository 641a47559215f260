// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// What a tracer has recorded of one loop. It outlives the loop and the thread.
final class TraceRecording: RunLoopInstrument {
    /// How many events are copied at once; a loop that records waits at most that long.
    private static let copyLimit = 256

    let threadID: Int32  // immutable
    let threadName: String  // immutable
    private let ring: Mutex<TraceRing>  // taken on the loop's thread for each event

    init(of loop: ThreadRunLoop, capacity: Int) {
        threadID = loop.threadID
        threadName = Self.name(ofThread: loop.threadID)
        ring = Mutex(TraceRing(capacity: capacity))
    }

    func open() {
        ring.withLock { $0.open(at: .now) }
    }

    func close() {
        ring.withLock { $0.close(at: .now) }
    }

    func note(_ event: RunLoopTraceEvent) {
        ring.withLock { $0.append(event) }
    }

    func loopFallsIdle(at time: MonotonicInstant) {}

    func loopDidEnd() {
        close()
    }

    /// How many events were overwritten.
    var droppedCount: Int { ring.withLock { $0.firstPosition } }

    /// The events that are stored now, in which each begin has its end.
    var events: [RunLoopTraceEvent] {
        var copied: [RunLoopTraceEvent] = []
        let (start, end) = ring.withLock { ($0.firstPosition, $0.count) }
        var next = start
        var position = start
        while position < end {
            let (piece, first) = ring.withLock { $0.copy(from: position, limit: min(Self.copyLimit, end - position)) }
            if first != position {
                // The loop was faster: the events before the gap are gone from the ring too.
                copied = []
                next = first
            }
            copied += piece
            position = first + piece.count
        }
        let cuts = ring.withLock { $0.cuts }
        return TraceBalance.balanced(copied, from: next, cuts: cuts, endingAt: .now)
    }

    private static func name(ofThread threadID: Int32) -> String {
        do throws(SystemError) {
            let file = try sysOpen("/proc/self/task/\(threadID)/comm", .reading)
            let name = try sysReadAll(file.raw).prefix { $0 != UInt8(ascii: "\n") }
            return String(decoding: name, as: UTF8.self)
        } catch {
            return "thread \(threadID)"
        }
    }
}
