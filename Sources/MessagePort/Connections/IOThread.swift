// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

/// The one thread that receives from sockets for all tasks of the process that wait for messages or replies.
///
/// It starts when it is first needed, and stays. Tasks that wait for in-memory messages do not need it. A forked child,
/// which has no copy of the thread, starts its own.
package enum IOThread {
    private struct Receiver {
        var thread: ResidentThread
        /// What is watched until there is room, and until something arrives. A descriptor may be in both.
        var rooms: DescriptorWatches?
        var arrivals: DescriptorWatches?
        let forkGuard = ForkGuard()
    }

    private static let receiver = Mutex<Receiver?>(nil)

    /// Its loop, if it has started.
    package static var startedLoop: ThreadRunLoop? {
        receiver.withLock { $0 }.flatMap { $0.forkGuard.isInherited ? nil : $0.thread.loop }
    }

    package static func loop() throws(PortError) -> ThreadRunLoop {
        if let receiver = receiver.withLock({ $0 }), !receiver.forkGuard.isInherited { return receiver.thread.loop }
        let made = try PortError.converting(ResidentThread(name: "port-receiver"))
        return receiver.withLock { receiver in
            if let receiver, !receiver.forkGuard.isInherited { return receiver.thread.loop }
            // SAFETY: the reference is never used: the parent's thread, which does not exist here, is never stopped.
            if let receiver {
                _ = unsafe Unmanaged.passRetained(receiver.thread)
                for watches in [receiver.rooms, receiver.arrivals] {
                    if let watches { _ = unsafe Unmanaged.passRetained(watches) }
                }
            }
            receiver = Receiver(thread: made)
            return made.loop
        }
    }

    /// The descriptors that its loop watches for room; made when they are first needed, and retained.
    package static func rooms() throws(PortError) -> DescriptorWatches { try watches(\.rooms) }

    /// The same for what arrives.
    package static func arrivals() throws(PortError) -> DescriptorWatches { try watches(\.arrivals) }

    private static func watches(
        _ path: any WritableKeyPath<Receiver, DescriptorWatches?> & Sendable
    ) throws(PortError) -> DescriptorWatches {
        let loop = try loop()
        if let watches = receiver.withLock({ $0?[keyPath: path] }) { return watches }
        return try making.withLock { (_) throws(PortError) in
            if let watches = receiver.withLock({ $0?[keyPath: path] }) { return watches }
            let made = try DescriptorWatches(on: loop)
            receiver.withLock { $0?[keyPath: path] = made }
            return made
        }
    }

    /// Whether something is watched until its first report.
    package static var hasSingleWatch: Bool {
        let receiver = receiver.withLock { $0 }
        return receiver?.rooms?.hasSingleWatch == true || receiver?.arrivals?.hasSingleWatch == true
    }

    /// Locked while the set is made, so that there is only one.
    private static let making = Mutex(())
}

/// Descriptors that the I/O thread watches: one set for all of them, so that a peer that does not read, or connects often,
/// takes no descriptor for each of its connections.
package final class DescriptorWatches: SourceRoutine {
    private struct Watch: Sendable {
        /// Whether the first report is the last.
        let isSingle: Bool  // immutable
        let descriptor: CInt  // immutable
        let notify: @Sendable () -> Void  // immutable
    }

    private let set: EpollSet  // immutable
    private let state = Mutex((lastKey: UInt64(0), watches: [UInt64: Watch]()))

    /// Makes a set that a loop watches from now on.
    init(on loop: ThreadRunLoop) throws(PortError) {
        set = try PortError.converting(EpollSet())
        let source = RunLoopSource(name: "port watches", keepsModeAlive: false, routine: self)
        try loop.addOrThrow(source, to: .default)
        do throws(SystemError) {
            try source.watch(pollable: set.raw)
        } catch {
            source.invalidate()
            throw PortError(error)
        }
    }

    /// Watches a descriptor that is not in the set. The loop calls `notify`, with no lock held, for each report, or for
    /// the first only: then the watch has ended. What `notify` retains, such as the owner of the descriptor, is retained
    /// until the watch ends.
    ///
    /// - Returns: the key for `remove`.
    /// - Throws: `ENOSPC`, `ENOMEM`: then the descriptor is not watched.
    @discardableResult
    func add(
        _ descriptor: CInt, _ events: EpollEvents, once isSingle: Bool, _ notify: @escaping @Sendable () -> Void
    ) throws(SystemError) -> UInt64 {
        try state.withLock { (state) throws(SystemError) in
            state.lastKey += 1
            try set.add(descriptor, events, key: state.lastKey)
            state.watches[state.lastKey] = Watch(isSingle: isSingle, descriptor: descriptor, notify: notify)
            return state.lastKey
        }
    }

    /// Whether something is watched until its first report.
    fileprivate var hasSingleWatch: Bool { state.withLock { $0.watches.values.contains { $0.isSingle } } }

    /// Ends a watch, before its descriptor is closed. A call that has begun goes on.
    func remove(_ key: UInt64) {
        let watch = state.withLock { state in
            let watch = state.watches.removeValue(forKey: key)
            if let watch { set.remove(watch.descriptor) }
            return watch
        }
        withExtendedLifetime(watch) {}  // what it retains is released without the lock
    }

    package func perform() -> SourceOutcome {
        for report in set.wait(until: .distantPast) {
            let notify = state.withLock { state -> (@Sendable () -> Void)? in
                guard let watch = state.watches[report.key] else { return nil }
                if watch.isSingle {
                    state.watches[report.key] = nil
                    set.remove(watch.descriptor)
                }
                return watch.notify
            }
            notify?()
        }
        return .handled
    }
}
