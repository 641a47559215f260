// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import PortSystem

/// Monitors a loop from a thread of its own, and reports what keeps it busy for too long.
///
/// A loop is busy from the moment at which it has something to do until it has nothing to do and sleeps, or its run
/// ends. A loop that has been busy for the threshold has *stalled*: because one handler is slow, or because many
/// handlers together leave it no idle time. Each stall is reported twice: while it lasts, with the handler that is
/// being called, and when it is over, with its whole duration. A nested run that sleeps does not stall. The monitor
/// does not see what a thread does outside the runs of its loop, nor a handler that was already being called when the
/// monitor was made.
///
/// The monitor's thread sleeps while the loop is idle, and wakes about once per threshold while the loop works. It uses
/// no descriptor. A loop may have several monitors. A monitor ends when it is released, in an optimized build right
/// after its last use: store it in a property. When its handler retains it, ``invalidate()`` ends it. When the loop's
/// thread ends, a stall that was reported is over; nothing follows.
///
/// - Important: Thread safety: any thread.
public final class RunLoopStallMonitor: Sendable {
    /// What a monitor calls with each report.
    public typealias Handler = @Sendable (RunLoopStall) -> Void

    /// How long a loop may be busy, unless another limit is given: about the longest time that a person perceives as
    /// "at once".
    public static let defaultThreshold = Duration.milliseconds(250)

    let record: StallRecord
    private weak let loop: ThreadRunLoop?

    /// How long the loop may be busy.
    public let threshold: Duration

    /// Starts monitoring a loop.
    ///
    /// - Parameters:
    ///   - loop: the loop.
    ///   - threshold: how long it may be busy, greater than zero, or the call traps.
    ///   - reportLoop: the loop on which to call the handler, in its common modes; nil for the monitor's own thread,
    ///     where the next report waits until the handler returns. On the monitored loop itself every report arrives when
    ///     the stall is over.
    ///   - handler: what to call. It is retained until the monitor has ended.
    /// - Throws: `EAGAIN` when the system cannot make a thread.
    public init(
        of loop: ThreadRunLoop = .main, threshold: Duration = defaultThreshold,
        reportingOn reportLoop: ThreadRunLoop? = nil, _ handler: @escaping Handler
    ) throws(SystemError) {
        if threshold <= .zero {
            fatalError("A stall monitor needs a threshold greater than zero. Choose one, such as the default.")
        }
        let record = StallRecord(of: loop, threshold: threshold)
        self.record = record
        self.threshold = threshold
        self.loop = loop
        // The thread is detached: it ends after `end`.
        _ = try sysStartThread(blocksSignals: true) {
            sysNameThread("stall-monitor")
            record.monitor { stall in
                guard let reportLoop else { return handler(stall) }
                reportLoop.perform(in: [.common], name: "stall report") { handler(stall) }
            }
        }
        loop.add(record)
    }

    deinit {
        invalidate()
    }

    /// Whether it monitors the loop.
    public var isValid: Bool { !record.isOver }

    /// Ends the monitor, permanently. A report that is in progress continues, and one that was posted to a loop arrives.
    public func invalidate() {
        loop?.remove(record)
        record.end()
    }
}
