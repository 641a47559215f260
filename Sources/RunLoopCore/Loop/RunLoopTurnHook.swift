// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// A bracket is the time between a call of `begin` and its call of `end`. Each run of the loop in one of the hook's
// modes has its own, and the brackets of nested runs nest. The hook remembers the depths of the runs whose brackets are
// open, so only the run that began a bracket ends it.

import Synchronization

/// Work at the beginning and at the end of every pass of a loop's runs, as the main loop of a Cocoa program creates and
/// drains its autorelease pools.
///
/// `begin` is called when a run is entered, before all other observers. Before each wait, after all other observers,
/// `end` and `begin` are called: what was done since the last wait is cleaned up before the loop sleeps. `end` is
/// called when the run exits, after all other observers. (A pass that polls does not wait; it shares a bracket with the
/// next one.) Among observers with the lowest or the highest possible order, the one that was added first is called
/// first.
///
/// The calls are balanced: each `begin` is followed by its `end`, also when the run is stopped or finishes, and a
/// nested run has a bracket of its own inside that of the run below. A run that starts inside `begin` or `end` has
/// none. A hook that is added during a run begins at that run's next wait.
///
/// The loop holds the hook until it is invalidated or the thread ends. Hooks do not keep a run going.
///
/// - Important: Thread safety: any thread. `begin` and `end` are called on the loop's thread, with no lock held.
public final class RunLoopTurnHook: Sendable {
    private struct State: Sendable {
        var isValid = true
        /// The depths of the runs whose brackets are open, innermost last.
        var depths: [Int] = []
        /// `begin` or `end` is in progress.
        var isCalling = false
        // Owned by the loop.
        weak var opening: RunLoopObserver?
        weak var closing: RunLoopObserver?
    }

    private let begin: @Sendable () -> Void
    private let end: @Sendable () -> Void
    private let state = Mutex(State())

    fileprivate init(begin: @escaping @Sendable () -> Void, end: @escaping @Sendable () -> Void) {
        self.begin = begin
        self.end = end
    }

    /// Whether it still begins brackets.
    public var isValid: Bool { state.withLock { $0.isValid } }

    /// Begins no more brackets. One that is open ends where it would end anyway: before its run's next wait, or at its
    /// exit.
    public func invalidate() {
        state.withLock { $0.isValid = false }
        removeUnlessOpen()
    }

    fileprivate func add(to loop: ThreadRunLoop, _ modes: [RunLoopMode]) {
        let opening = RunLoopObserver(name: "turn hook", activities: .entry, order: .min) { [weak loop] _, _ in
            if let loop { self.open(at: loop.runDepth) }
        }
        let closing = RunLoopObserver(name: "turn hook", activities: [.beforeWaiting, .exit], order: .max) {
            [weak loop] _, activity in
            guard let loop else { return }
            let depth = loop.runDepth
            self.close(at: depth)
            if activity == .beforeWaiting { self.open(at: depth) }
        }
        state.withLock { state in
            state.opening = opening
            state.closing = closing
        }
        for mode in modes {
            loop.add(closing, to: mode)
            loop.add(opening, to: mode)
        }
    }

    private func open(at depth: Int) {
        let mayCall = state.withLock { state in
            if !state.isValid || state.isCalling { return false }
            state.depths.append(depth)
            state.isCalling = true
            return true
        }
        if mayCall { call(begin) }
    }

    private func close(at depth: Int) {
        let mayCall = state.withLock { state in
            if state.isCalling || state.depths.last != depth { return false }
            state.depths.removeLast()
            state.isCalling = true
            return true
        }
        if mayCall { call(end) }
        removeUnlessOpen()
    }

    private func call(_ body: () -> Void) {
        body()
        state.withLock { $0.isCalling = false }
    }

    /// Removes an invalid hook's observers from the loop, once it has no bracket left to end.
    private func removeUnlessOpen() {
        let observers = state.withLock { state in
            state.isValid || !state.depths.isEmpty ? [] : [state.opening, state.closing]
        }
        for observer in observers { observer?.invalidate() }
    }
}

extension ThreadRunLoop {
    /// Adds a hook that is called at the beginning and at the end of every pass. See ``RunLoopTurnHook``.
    ///
    /// - Parameters:
    ///   - modes: in which modes; ``RunLoopMode/common`` for all common modes.
    ///   - begin: what to call when a run is entered, and before each wait after `end`.
    ///   - end: what to call before each wait, and when a run exits.
    /// - Returns: the hook, for invalidating it.
    /// - Important: Thread safety: any thread.
    @discardableResult
    public func addTurnHook(
        to modes: [RunLoopMode] = [.common], begin: @escaping @Sendable () -> Void, end: @escaping @Sendable () -> Void
    ) -> RunLoopTurnHook {
        let hook = RunLoopTurnHook(begin: begin, end: end)
        hook.add(to: self, modes)
        return hook
    }

    /// How many runs are in progress, one inside the other.
    fileprivate var runDepth: Int { state.withLock { $0.runs.count } }
}
