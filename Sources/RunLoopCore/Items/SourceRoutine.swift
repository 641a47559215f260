// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// What a source does when its loops ask or tell it something. No lock is held meanwhile.
///
/// The public initializers of `RunLoopSource` make one of closures. A type of its own takes less memory: one of up to
/// three words lies in the source itself.
package protocol SourceRoutine: Sendable {
    /// Whether a port-based source has something to handle; it has, also when its descriptor is ready.
    func isReady() -> Bool
    /// Whether to perform a port-based source is a look as well, which does nothing when nothing is there: then it is performed
    /// also when the kernel has reported its descriptor some turns ago, and is not asked once more.
    var looksWhenPerformed: Bool { get }
    /// The source has entered a mode of a loop.
    func didEnter(_ mode: RunLoopMode, of loop: ThreadRunLoop)
    /// The source has left a mode of a loop.
    func didLeave(_ mode: RunLoopMode, of loop: ThreadRunLoop)
    /// Calls `body` with each place where something for a port-based source may arrive without the kernel's knowing, as
    /// long as a loop looks there. Takes no memory: a loop asks before each spin.
    func visitArrivalPlaces(_ body: (any BusyPollable) -> Void)
    /// Handles what the source has.
    ///
    /// - Returns: what was done, and seen.
    func perform() -> SourceOutcome
    /// Handles what a port-based source has: one thing, and the next ones as long as each may have the loop's next
    /// turn.
    ///
    /// - Parameter goesOn: begins the loop's next turn, for one more thing that is there; false when that turn has to
    ///   begin with something else.
    /// - Returns: what was done, and seen.
    func perform(while goesOn: () -> Bool) -> SourceOutcome
}

/// What a routine has done, and seen.
package struct SourceOutcome: Sendable {
    /// Whether there was anything worth a return from a run.
    package var hasHandled: Bool
    /// Whether the routine has seen that more is there, or nothing; nil when it is to be asked.
    package var isReady: Bool?

    package init(hasHandled: Bool, isReady: Bool? = nil) {
        self.hasHandled = hasHandled
        self.isReady = isReady
    }

    /// It has done what was to be done, and is to be asked whether more is there.
    package static var handled: SourceOutcome { SourceOutcome(hasHandled: true) }
    /// It has done nothing for which a run returns, and is to be asked whether more is there.
    package static var nothing: SourceOutcome { SourceOutcome(hasHandled: false) }
}

extension SourceRoutine {
    package func isReady() -> Bool { false }
    package var looksWhenPerformed: Bool { false }
    package func perform(while goesOn: () -> Bool) -> SourceOutcome { perform() }
    package func visitArrivalPlaces(_ body: (any BusyPollable) -> Void) {}
    package func didEnter(_ mode: RunLoopMode, of loop: ThreadRunLoop) {}
    package func didLeave(_ mode: RunLoopMode, of loop: ThreadRunLoop) {}
}

/// The routine of a source that was made of closures.
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
