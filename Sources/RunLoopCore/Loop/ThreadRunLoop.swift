// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
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
    let state = GuardedLoopState()
    let doorbell = LoopParker()
    let isAsleep = Atomic<Bool>(false)  // written by the loop's thread
    let counts = LoopCounts()  // written by the loop's thread
    let performing = PerformingSources()  // loop thread
    let processors = ProcessorAllowance()  // loop thread
    let lookout = BusyPollSet()  // loop thread
    let instruments = Mutex(Instruments())  // takes no other lock
    /// What the thread waits for, as noted by the layer that makes it wait, for other threads to read.
    package let waitNote = Mutex<(any AnyObject & Sendable)?>(nil)  // takes no other lock
    let isInstrumented = Atomic<Bool>(false)  // written under the lock of `instruments`
    let lastSpan = Atomic<UInt64>(0)  // written by the loop's thread

    /// The kernel's id of the loop's thread; the main thread's is the process's.
    package let threadID: Int32  // immutable
    /// Whether it is the main thread's.
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
        let loop = isMainThread ? main : ThreadRunLoop(threadID: sysThreadID())
        slot.value = loop
        return loop
    }

    private static var isMainThread: Bool { sysThreadID() == sysProcessID() }

    /// Whether this is the calling thread's loop.
    public var isCurrent: Bool {
        if let loop = Self.slot.value { return loop === self }
        guard isMain, Self.isMainThread else { return false }
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
    package var turnCount: Int { counts.turns }
}

extension ThreadRunLoop: Hashable {
    /// Whether both are the same loop.
    public static func == (left: ThreadRunLoop, right: ThreadRunLoop) -> Bool {
        left === right
    }

    /// Hashes the loop's identity.
    ///
    /// - Parameter hasher: takes the identity.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}

extension ThreadRunLoop: CustomStringConvertible {
    /// What it is, and the kernel's id of its thread.
    public var description: String {
        self === Self.main ? "run loop of the main thread \(threadID)" : "run loop of thread \(threadID)"
    }
}
