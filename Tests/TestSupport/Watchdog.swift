// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem
package import Testing

/// The one time limit of the tests. Nothing waits for a time to pass: each wait is for an event, and the watchdog only
/// ends a test that would otherwise hang. So its length is generous and says nothing about how long anything should
/// take.
package enum Watchdog {
    /// How long a wait may last: 60 seconds, or the number in `PORT_TEST_WATCHDOG`; 0 switches the watchdog off, for
    /// use in a debugger.
    package static let limit: Duration? = {
        guard let text = sysEnvironment("PORT_TEST_WATCHDOG"), let seconds = Int(text) else { return .seconds(60) }
        return seconds > 0 ? .seconds(seconds) : nil
    }()

    /// The limit for a call of the library that is to wait as long as necessary: the watchdog's.
    package static let longTimeout: Duration = limit ?? .seconds(86_400)

    /// The moment at which a wait that starts now gives up.
    package static var deadline: MonotonicInstant { limit.map(MonotonicInstant.after) ?? .distantFuture }

    /// Waits for an event. Records an issue when it does not come.
    ///
    /// - Returns: whether it came.
    @discardableResult
    package static func wait(
        for event: ThreadEvent, _ description: @autoclosure () -> String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) -> Bool {
        if event.wait(until: deadline) { return true }
        expired(description(), sourceLocation: sourceLocation)
        return false
    }

    /// Records that an awaited event did not come.
    package static func expired(_ description: String, sourceLocation: SourceLocation = #_sourceLocation) {
        let time = limit.map { "\($0)" } ?? "no time"
        Issue.record("The watchdog ended a wait after \(time): \(description).", sourceLocation: sourceLocation)
    }
}

/// How long a call of the library may wait in a test: as long as the watchdog.
package let longTimeout = Watchdog.longTimeout
