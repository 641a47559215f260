// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// What a source does when its loops ask or tell it something. No lock is held meanwhile.
///
/// The public initializers of `RunLoopSource` make one of closures. A type of its own takes less memory: one of up to three
/// words lies in the source itself.
package protocol SourceRoutine: Sendable {
    /// Whether a port-based source has something to handle; it has, also when its descriptor is ready.
    func isReady() -> Bool
    /// The source has entered a mode of a loop.
    func didEnter(_ mode: RunLoopMode, of loop: ThreadRunLoop)
    /// The source has left a mode of a loop.
    func didLeave(_ mode: RunLoopMode, of loop: ThreadRunLoop)
    /// Where something for a port-based source may arrive without the kernel's knowing, as long as a loop looks there.
    func arrivalPlaces() -> [any ArrivalPlace]
    /// Handles what the source has.
    ///
    /// - Returns: whether there was anything worth a return from a run.
    func perform() -> Bool
}

extension SourceRoutine {
    package func isReady() -> Bool { false }
    package func arrivalPlaces() -> [any ArrivalPlace] { [] }
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

    func perform() -> Bool {
        body()
        return true
    }
}
