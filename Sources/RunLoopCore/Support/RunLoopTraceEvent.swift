// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import PortSystem

/// One thing that a loop did: see ``RunLoopTracer``.
public struct RunLoopTraceEvent: Sendable, Hashable {
    /// What a loop did.
    public enum Kind: Sendable, Hashable {
        /// A run began, to end at that date; ``MonotonicInstant/distantPast`` means that it only polls.
        case runBegin(until: MonotonicInstant)
        /// A run ended; nil when the trace ended before it.
        case runEnd(RunLoopRunResult?)
        /// The loop reached this activity, whether or not an observer observes it.
        case activity(RunLoopActivity)
        /// A handler was called.
        case calloutBegin(RunLoopCallout)
        /// The handler returned, or the trace ended before that.
        case calloutEnd(RunLoopCallout)
        /// The loop polled for an event, and was ready to wait for one until that date;
        /// ``MonotonicInstant/distantPast`` means that it only polled.
        case waitBegin(until: MonotonicInstant)
        /// The poll or wait was over; `slept` says whether there was nothing to do meanwhile. Nil when the trace ended
        /// before it.
        case waitEnd(WaitCause?, slept: Bool)
    }

    /// What ended a wait.
    public enum WaitCause: UInt8, Sendable, Hashable, CustomStringConvertible {
        /// One or more timers are due.
        case timers
        /// A port-based source is ready.
        case source
        /// The main dispatch queue has blocks.
        case mainDispatchQueue
        /// The loop was woken: by hand, or because of a block, a signalled source, a stop or a change.
        case wakeUp
        /// The run's limit has passed.
        case limit
        /// The loop only polled, and found nothing.
        case nothing

        /// The cause in words.
        public var description: String {
            switch self {
            case .timers: "timers"
            case .source: "source"
            case .mainDispatchQueue: "main dispatch queue"
            case .wakeUp: "wake-up"
            case .limit: "limit"
            case .nothing: "nothing"
            }
        }
    }

    /// When it happened.
    public let time: MonotonicInstant
    /// The kernel's id of the loop's thread.
    public let threadID: Int32
    /// The mode of the run in which it happened.
    public let mode: RunLoopMode
    /// How many runs of the loop were in progress: 1 in a run, 2 in a nested run, and so on.
    public let depth: Int
    /// What happened.
    public let kind: Kind
    /// The number that a begin and its end have in common; 0 where there is none.
    let span: UInt64
}

extension RunLoopTraceEvent: CustomStringConvertible {
    /// What happened, in words, without its time and thread.
    public var description: String {
        switch kind {
        case .runBegin(let limit): "run in \(mode) begins, until \(Self.text(of: limit))"
        case .runEnd(let result): "run in \(mode) ends: \(result.map { "\($0)" } ?? "not seen")"
        case .activity(let activity): "\(activity) (\(activity.rawValue))"
        case .calloutBegin(let callout): "\(callout)"
        case .calloutEnd(let callout): "\(callout) returns"
        case .waitBegin(let limit): "wait until \(Self.text(of: limit))"
        case .waitEnd(let cause, let slept):
            "wait ends: \(cause.map { "\($0)" } ?? "not seen")\(slept ? ", slept" : "")"
        }
    }

    static func text(of limit: MonotonicInstant) -> String {
        switch limit {
        case .distantPast: "now"
        case .distantFuture: "woken"
        default: seconds(limit)
        }
    }

    // Traces write times with a fixed number of digits, without floating-point numbers.

    /// Seconds with six decimals.
    static func seconds(_ time: MonotonicInstant) -> String {
        decimal(time.nanoseconds / 1_000, fraction: 6)
    }

    /// Microseconds with three decimals.
    static func microseconds(_ nanoseconds: Int64) -> String {
        decimal(nanoseconds, fraction: 3)
    }

    private static func decimal(_ value: Int64, fraction: Int) -> String {
        let digits = String(value.magnitude)
        let padded = String(repeating: "0", count: max(0, fraction + 1 - digits.utf8.count)) + digits
        return (value < 0 ? "-" : "") + padded.dropLast(fraction) + "." + padded.suffix(fraction)
    }
}
