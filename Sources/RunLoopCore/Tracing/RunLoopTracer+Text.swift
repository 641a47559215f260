// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

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
        events.filter(\.isActivityOrHandler).map { $0.line(ofProcess: sysProcessID()) + "\n" }.joined()
    }

    /// Every event, one line each: as ``activityTrace``, and also the handlers of observers, runs and waits, and ends.
    public var text: String {
        events.map { $0.line(ofProcess: sysProcessID()) + "\n" }.joined()
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
        return "\(TraceTime.seconds(time)) [\(processID):\(threadID)] \(indentation)\(self)"
    }
}
