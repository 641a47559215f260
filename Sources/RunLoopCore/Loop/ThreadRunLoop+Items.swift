// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem
import Synchronization

extension ThreadRunLoop {
    /// Adds a source to a mode.
    ///
    /// Its `schedule` routine is called on the calling thread for each mode in which it is new. Adding it again changes
    /// nothing; adding an invalid source, or to a loop that has ended, does nothing. A source that is already signalled
    /// or ready is noticed at once. The loop holds the source until it is removed or invalidated.
    ///
    /// Traps when the kernel refuses to watch the source's descriptor because it is not open or cannot be waited for (a
    /// regular file). While the kernel lacks the resources to watch it, descriptors for example, the source is not
    /// called for it, and the loop tries again every 20 ms. To get an error instead, add the source first and then use
    /// ``RunLoopSource/watch(_:)``.
    ///
    /// - Parameters:
    ///   - source: the source.
    ///   - mode: the mode, or ``RunLoopMode/common`` for all common modes.
    public func add(_ source: RunLoopSource, to mode: RunLoopMode = .default) {
        do throws(SystemError) {
            try source.add(to: self, mode, orLater: true)
        } catch {
            Self.trapUnwatchable(error)
        }
    }

    /// Adds a source to a mode, as ``add(_:to:)-(RunLoopSource,_)`` does, but throws where that traps or tries again.
    ///
    /// - Throws: why the kernel does not watch the descriptor; the modes that the source is in are then unchanged.
    package func tryAdd(_ source: RunLoopSource, to mode: RunLoopMode) throws(SystemError) {
        try source.add(to: self, mode)
    }

    static func trapUnwatchable(_ error: SystemError) -> Never {
        fatalError(
            "A run loop cannot watch a source's descriptor: \(error). Keep the descriptor open until the source is "
                + "invalid, and use one that can be waited for.")
    }

    /// Removes a source from a mode; its `cancel` routine is called on the calling thread for each mode that it leaves.
    ///
    /// A callout that is in progress continues. Removing a source from the common modes leaves it in the modes to which
    /// it was added individually.
    ///
    /// - Parameters:
    ///   - source: the source.
    ///   - mode: the mode, or ``RunLoopMode/common``.
    public func remove(_ source: RunLoopSource, from mode: RunLoopMode = .default) {
        source.remove(from: self, mode)
    }

    /// Whether a source is in a mode.
    ///
    /// - Parameters:
    ///   - source: the source.
    ///   - mode: the mode, or ``RunLoopMode/common`` for the common modes as such.
    /// - Returns: whether it is there.
    public func contains(_ source: RunLoopSource, in mode: RunLoopMode = .default) -> Bool {
        state.withLock { $0.contains(source.id, in: mode) }
    }

    /// Adds a timer to a mode. Does nothing for an invalid timer or a loop that has ended. The loop holds the timer
    /// until it is removed or invalidated.
    ///
    /// - Parameters:
    ///   - timer: the timer.
    ///   - mode: the mode, or ``RunLoopMode/common`` for all common modes.
    public func add(_ timer: RunLoopTimer, to mode: RunLoopMode = .default) {
        timer.add(to: self, mode)
    }

    /// Removes a timer from a mode.
    ///
    /// - Parameters:
    ///   - timer: the timer.
    ///   - mode: the mode, or ``RunLoopMode/common``, which leaves it in the modes to which it was added individually.
    public func remove(_ timer: RunLoopTimer, from mode: RunLoopMode = .default) {
        timer.remove(from: self, mode)
    }

    /// Whether a timer is in a mode.
    ///
    /// - Parameters:
    ///   - timer: the timer.
    ///   - mode: the mode, or ``RunLoopMode/common`` for the common modes as such.
    /// - Returns: whether it is there.
    public func contains(_ timer: RunLoopTimer, in mode: RunLoopMode = .default) -> Bool {
        state.withLock { $0.contains(timer.id, in: mode) }
    }

    /// Adds an observer to a mode. Does nothing for an invalid observer or a loop that has ended. The loop holds the
    /// observer until it is removed or invalidated. Observers do not keep a run going.
    ///
    /// - Parameters:
    ///   - observer: the observer.
    ///   - mode: the mode, or ``RunLoopMode/common`` for all common modes.
    public func add(_ observer: RunLoopObserver, to mode: RunLoopMode = .default) {
        observer.add(to: self, mode)
    }

    /// Removes an observer from a mode.
    ///
    /// - Parameters:
    ///   - observer: the observer.
    ///   - mode: the mode, or ``RunLoopMode/common``, which leaves it in the modes to which it was added individually.
    public func remove(_ observer: RunLoopObserver, from mode: RunLoopMode = .default) {
        observer.remove(from: self, mode)
    }

    /// Whether an observer is in a mode.
    ///
    /// - Parameters:
    ///   - observer: the observer.
    ///   - mode: the mode, or ``RunLoopMode/common`` for the common modes as such.
    /// - Returns: whether it is there.
    public func contains(_ observer: RunLoopObserver, in mode: RunLoopMode = .default) -> Bool {
        state.withLock { $0.contains(observer.id, in: mode) }
    }
}

extension ThreadRunLoop {
    /// Removes an item from a mode, and wakes the loop when that leaves its run nothing to wait for.
    func takeOut(_ id: ItemID, from mode: RunLoopMode?) -> (departures: [RunLoopState.Departure], isGone: Bool) {
        let (departures, isGone, mustWake) = state.withLock { state in
            let departures = mode.map { state.remove(id, from: $0) } ?? state.removeEverywhere(id)
            let mustWake = departures.contains { state.isRunning(in: $0.mode) && state.isEmpty($0.mode) }
            return (departures, !state.contains(id), mustWake)
        }
        if mustWake { doorbell.endWait() }
        return (departures, isGone)
    }

    /// The loop's thread ends. Called on it.
    func end() {
        let all = endAfterJobs()
        for item in all.everyItem { item.forget(self) }
        for request in all.requests.all { request.drop() }
        for (source, mode) in all.sourcesByMode {
            source.routine.didLeave(all.modes[mode].name, of: self)
        }
        endInstruments()
        doorbell.end()
    }
}
