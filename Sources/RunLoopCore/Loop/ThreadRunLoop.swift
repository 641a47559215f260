// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import PortSystem
package import Synchronization

/// The run loop of a thread: waits for sources, timers and blocks, and calls their handlers on that thread.
///
/// Each thread has one, made on first use and ended with the thread. ``current`` returns it on its own thread; it may
/// be passed to other threads, which may add to it, remove from it, wake it, stop it and post blocks to it. Only its
/// own thread runs it. The order of a run is in `Docs/RunLoopOrder.md`.
///
/// A loop holds what was added to it until that is removed or invalidated, or until the thread ends: then sources are
/// cancelled, timers and observers dropped, and blocks released without being called; the jobs of actors and tasks run
/// before that.
///
/// A loop that watches no descriptor holds none. The first source with a descriptor opens one (an eventfd), and each
/// mode with such a source one more. They are closed when the thread ends. The main thread's loop serves the main
/// queue, and so opens the first two when it first runs.
///
/// - Important: Thread safety: any thread, except for the `run` functions: loop thread only, they trap elsewhere.
public final class ThreadRunLoop: Sendable {
    // First what a thread with work for the loop reads and changes: see LineTests.
    let parker = LoopParker()  // immutable
    let state = LockedLoopState()
    let isAsleep = Atomic<Bool>(false)  // written by the loop's thread
    let counts = LoopCounts()  // written by the loop's thread
    let processors = ProcessorAllowance()  // loop thread
    let threadState = LoopThreadState()  // loop thread
    let instruments = Mutex<[any RunLoopInstrument]?>([])  // takes no other lock; nil after the end
    /// What the thread waits for, as noted by the layer that makes it wait, for other threads to read.
    package let waitNote = Mutex<(any Sendable)?>(nil)  // takes no other lock
    /// What that layer reuses for the thread's next wait.
    package let waitCache = ObjectCache()
    let isInstrumented = Atomic<Bool>(false)  // written under the lock of `instruments`
    let lastSpan = Atomic<UInt64>(0)  // written by the loop's thread

    /// The kernel's id of the loop's thread; the main thread's is the process's.
    package let threadID: Int32  // immutable
    let isMain: Bool  // immutable

    private init(threadID: Int32) {
        self.threadID = threadID
        isMain = threadID == sysProcessID()
    }

    private static let slot = ThreadLocal<ThreadRunLoop> { $0.end() }

    /// The main thread's loop, from any thread.
    public static let main = ThreadRunLoop(threadID: sysProcessID())

    /// The calling thread's loop, made when it does not exist yet.
    @available(*, noasync, message: "A task has no thread of its own: this would be the loop of a pool's thread.")
    public static var current: ThreadRunLoop {
        if let loop = slot.value { return loop }
        let loop = isOnMainThread() ? main : ThreadRunLoop(threadID: sysThreadID())
        slot.value = loop
        return loop
    }

    private static func isOnMainThread() -> Bool { sysThreadID() == sysProcessID() }

    /// Whether this is the calling thread's loop.
    public var isCurrent: Bool {
        if let loop = Self.slot.value { return loop === self }
        guard isMain, Self.isOnMainThread() else { return false }
        Self.slot.value = self
        return true
    }

    /// Traps when the calling thread is not this loop's thread.
    ///
    /// - Parameter what: what the caller wanted to do, as the beginning of a sentence.
    public func preconditionOnLoop(_ what: @autoclosure () -> String = "This") {
        if isCurrent { return }
        fatalError(
            "\(what()) is allowed on the thread of its run loop only. Post a block with `perform` to get to that thread."
        )
    }

    /// How often the loop has waited in the kernel, including polls with zero timeout.
    package var kernelWaitCount: Int { counts.kernelWaits }

    /// How many passes the loop has made.
    package var passCount: Int { counts.passes }
}

extension ThreadRunLoop: Hashable {
    /// Whether both are the same loop.
    public static func == (left: ThreadRunLoop, right: ThreadRunLoop) -> Bool { left === right }

    /// Hashes the loop's identity.
    ///
    /// - Parameter hasher: takes the identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension ThreadRunLoop: CustomStringConvertible {
    /// What it is, and the kernel's id of its thread.
    public var description: String {
        self === Self.main ? "run loop of the main thread \(threadID)" : "run loop of thread \(threadID)"
    }
}

// MARK: - Modes

extension ThreadRunLoop {
    /// The mode of the innermost run; nil when the loop does not run.
    public var currentMode: RunLoopMode? {
        state.withLock { state in state.runs.last.map { state.modes[$0.mode].name } }
    }

    /// Every mode that something was added to or a block was posted for, and the default mode. Modes never go away.
    public var allModes: Set<RunLoopMode> {
        state.withLock { $0.modeNames }
    }

    /// Whether the loop waits: true from before it polls for an event until it has one, also when it only polls.
    public var isWaiting: Bool { isAsleep.load(ordering: .acquiring) }

    /// Whether the loop's thread has ended. Items that are added to such a loop are ignored, blocks posted to it are
    /// released.
    public var hasEnded: Bool {
        state.withLock { $0.hasEnded }
    }

    /// The earliest date at which a timer of a mode fires.
    ///
    /// - Parameter mode: the mode.
    /// - Returns: the date, which may be past; nil when the mode has no armed timer.
    public func nextTimerFireDate(in mode: RunLoopMode = .default) -> MonotonicInstant? {
        state.withLock { state in
            state.index(of: mode).flatMap { state.modes[$0].timers.nextFireDate }
        }
    }

    /// Makes a mode common, permanently: everything that was or will be added to the common modes is in it too.
    ///
    /// For sources that are new in it, the `schedule` routine is called on the calling thread.
    ///
    /// - Parameter mode: the mode; one that is already common, and ``RunLoopMode/common`` itself, change nothing.
    public func addCommonMode(_ mode: RunLoopMode) {
        for (item, index) in state.withLock({ $0.addCommonMode(mode) }) {
            switch item {
            case .source(let source):
                do throws(SystemError) {
                    try source.didEnter([index], of: self, orLater: true)
                } catch {
                    Self.trapUnwatchable(error)
                }
            case .timer(let timer): timer.armAgain()
            case .observer: break
            }
        }
        parker.endWait()
    }

    /// Stops the innermost run: it returns ``RunLoopRunResult/stopped`` at the end of its current pass.
    ///
    /// A stop is never lost: when the loop does not run, it ends the next run at once. It applies to the run that is
    /// innermost now; when that run returns for another reason at the same moment, the stop goes to the run below.
    /// Stops do not add up.
    public func stop() {
        state.withLock { $0.stop() }
        parker.endWait()
    }

    /// Wakes the loop when it sleeps, or keeps the current pass from sleeping. Makes no run return, and has no effect
    /// on a loop that does not run or that handles an event, because it checks everything before it sleeps.
    public func wakeUp() {
        parker.wakeUp()
    }

    /// Posts a block, which the loop calls once when it runs in one of the modes, after all blocks posted before.
    ///
    /// The call returns at once and wakes the loop. A block that is never called because the thread ends is released on
    /// the ending thread. When the thread has already ended, the block is released at once.
    ///
    /// - Parameters:
    ///   - modes: in which modes; ``RunLoopMode/common`` means the modes that are common when the loop calls its
    ///     blocks.
    ///   - name: what the block is called in traces and reports.
    ///   - block: what to call, on the loop's thread.
    public func perform(
        in modes: [RunLoopMode] = [.default], name: String? = nil, _ block: @escaping @Sendable () -> Void
    ) {
        let mustWake = state.withLock { state in
            if state.hasEnded { return false }
            return state.post(block, in: modes, name: name)
        }
        if mustWake { parker.endWait() }
    }
}

// MARK: - Items

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
    func removeItem(_ id: ItemID, from mode: RunLoopMode?) -> (departures: [RunLoopState.Removal], isGone: Bool) {
        let (departures, isGone, mustWake) = state.withLock { state in
            let departures = mode.map { state.remove(id, from: $0) } ?? state.removeEverywhere(id)
            let mustWake = departures.contains { state.isRunning(in: $0.mode) && state.isEmpty($0.mode) }
            return (departures, !state.contains(id), mustWake)
        }
        if mustWake { parker.endWait() }
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
        _ = waitCache.take()  // which may hold the loop
        parker.end()
    }
}
