// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// What a source does when its loops query or notify it. No lock is held during these calls.
///
/// The public initializers of `RunLoopSource` make one from closures. A type of its own needs less memory: one of up to
/// three words is stored in the source itself.
package protocol SourceRoutine: Sendable {
    /// Whether a port-based source has something to handle; it also has when its descriptor is ready.
    func isReady() -> Bool
    /// Whether performing a port-based source includes a check, and does nothing when there is nothing: then it is
    /// performed also when the kernel reported its descriptor some passes ago, and the descriptor is not polled again.
    var checksWhenPerformed: Bool { get }
    /// The source has entered a mode of a loop.
    func didEnter(_ mode: RunLoopMode, of loop: ThreadRunLoop)
    /// The source has left a mode of a loop.
    func didLeave(_ mode: RunLoopMode, of loop: ThreadRunLoop)
    /// Calls `body` with each piece of memory in which something for a port-based source may arrive without a system
    /// call, as long as a loop polls it. Allocates nothing: a loop calls this before each spin.
    func visitPollables(_ body: (any BusyPollable) -> Void)
    /// Handles what the source has.
    ///
    /// - Returns: what was done, and what was seen.
    func perform() -> SourceOutcome
    /// Handles what a port-based source has: one item, and the next ones as long as each may have the loop's next pass.
    ///
    /// - Parameter beginNextPass: begins the loop's next pass, for one more item; false when that pass must begin with
    ///   something else.
    /// - Returns: what was done, and what was seen.
    func perform(while beginNextPass: () -> Bool) -> SourceOutcome
}

/// What a routine has done, and what it has seen.
package struct SourceOutcome: Sendable {
    /// Whether it handled anything for which a run returns.
    package var hasHandled: Bool
    /// Whether the routine has seen that there is more, or nothing; nil when the loop must check.
    package var isReady: Bool?

    package init(hasHandled: Bool, isReady: Bool? = nil) {
        self.hasHandled = hasHandled
        self.isReady = isReady
    }

    /// It has handled something, and the loop must check whether there is more.
    package static var handled: SourceOutcome { SourceOutcome(hasHandled: true) }
    /// It has done nothing for which a run returns, and the loop must check whether there is more.
    package static var nothing: SourceOutcome { SourceOutcome(hasHandled: false) }
}

extension SourceRoutine {
    package func isReady() -> Bool { false }
    package var checksWhenPerformed: Bool { false }
    package func perform(while beginNextPass: () -> Bool) -> SourceOutcome { perform() }
    package func visitPollables(_ body: (any BusyPollable) -> Void) {}
    package func didEnter(_ mode: RunLoopMode, of loop: ThreadRunLoop) {}
    package func didLeave(_ mode: RunLoopMode, of loop: ThreadRunLoop) {}
}

/// The routine of a source that was made from closures.
struct SourceClosures: SourceRoutine {
    var readiness: RunLoopSource.Readiness?
    var schedule: RunLoopSource.ModeRoutine?
    var cancel: RunLoopSource.ModeRoutine?
    var body: RunLoopSource.Perform

    func isReady() -> Bool { readiness?() ?? false }
    func didEnter(_ mode: RunLoopMode, of loop: ThreadRunLoop) { schedule?(loop, mode) }
    func didLeave(_ mode: RunLoopMode, of loop: ThreadRunLoop) { cancel?(loop, mode) }

    func perform() -> SourceOutcome {
        body()
        return .handled
    }
}
