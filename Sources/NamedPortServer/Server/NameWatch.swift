// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort
import PortCLibrary
import PortSystem
import Synchronization

/// Reports to a run loop which names come and go. ``PortNameServer/watch(on:in:_:)`` makes it.
///
/// - Important: Thread safety: any thread.
public final class NameWatch: Sendable {
    /// Gets one event; or why the watch has ended by itself.
    public typealias Handler = @Sendable (Result<NameEvent, PortError>) -> Void

    private let source = Mutex<RunLoopSource?>(nil)  // emptied at the end
    private let alarm = Mutex<RunLoopTimer?>(nil)
    private let forkGuard = ForkGuard()  // immutable

    init(_ monitor: NameMonitor, on loop: ThreadRunLoop, in mode: RunLoopMode, _ handler: @escaping Handler)
        throws(PortError)
    {
        let source = RunLoopSource(
            name: "port names", readiness: { monitor.hasMore },
            cancel: { [self] loop, _ in if loop.hasEnded { end() } },
            perform: { [self] in
                guard isValid else { return }
                var nextTry = MonotonicInstant.distantFuture
                defer { ring(at: min(nextTry, monitor.nextCheck), on: loop, in: mode) }
                do throws(PortError) {
                    // The watch may have ended during the call of `next()`.
                    if let event = try monitor.next(), isValid { handler(.success(event)) }
                } catch {
                    if error.isOwnShortage {
                        nextTry = .after(Tuning.timeUntilRetry)
                    } else if end() {
                        handler(.failure(error))
                    }
                }
            })
        self.source.withLock { $0 = source }
        do throws(PortError) {
            try PortError.converting(source.watch(monitor.raw))
            try loop.addOrThrow(source, to: mode)
            source.ring()
        } catch {
            end()
            throw error
        }
        if loop.hasEnded { end() }
    }

    /// Has a timer signal the source at a date, in place of the date before.
    private func ring(at date: MonotonicInstant, on loop: ThreadRunLoop, in mode: RunLoopMode) {
        var made: RunLoopTimer?
        if date != .distantFuture, isValid {
            made = RunLoopTimer(name: "port names", fireDate: date) { [weak self] _ in
                if let self, !forkGuard.isInherited { self.source.withLock { $0 }?.ring() }
            }
        }
        let (next, old) = alarm.withLock { [made] alarm in
            defer { alarm = made }
            return (made, alarm)
        }
        old?.invalidate()
        guard let next else { return }
        loop.add(next, to: mode)
        if !isValid { next.invalidate() }
    }

    /// - Returns: false when it has ended before.
    @discardableResult
    private func end() -> Bool {
        if forkGuard.isInherited { return false }
        guard let source = source.withLock({ $0.take() }) else { return false }
        source.invalidate()
        alarm.withLock { $0.take() }?.invalidate()
        return true
    }

    /// Whether it may still report events.
    public var isValid: Bool { !forkGuard.isInherited && source.withLock { $0 }?.isValid == true }

    /// Ends the watch. After a call on the loop's thread no handler begins. A call on another thread does not wait for
    /// the loop: a handler that is running goes on, and so does one that the loop is about to call.
    public func invalidate() {
        end()
    }
}

extension PortNameServer {
    /// Reports to a run loop which names come and go.
    ///
    /// First come the names that are held now, as ``NameEvent/appeared(_:)``, in alphabetical order, then what happens,
    /// in the order in which it does. A name that passes from one port to another goes and then appears. A name is
    /// reported as appeared only when it can be looked up, as gone only after it was reported as appeared, and neither
    /// twice in a row. It goes when it is unregistered, when its port ends, and when its owner ends, by `kill -9` too;
    /// and when the directory of names is removed. When the kernel has lost some of the changes, all names are compared
    /// with those reported before: first those that have gone are reported, then those that have appeared, each by
    /// name. What comes and goes between two readings of the directory may be reported in part or not at all.
    ///
    /// The loop retains the watch, as it retains a source (version 1), until it is invalidated. Each pass of the loop
    /// reports one event.
    ///
    /// - Parameters:
    ///   - loop: the loop; the current thread's unless said otherwise.
    ///   - mode: a mode of it, or ``/RunLoopCore/RunLoopMode/common``.
    ///   - handler: called on the loop's thread for each event. A failure comes once, and ends the watch. A lack of
    ///     descriptors or memory in this process is no failure: the watch tries again every 100 ms until there is one.
    /// - Returns: the watch.
    /// - Throws: ``/MessagePort/PortError/Code/watchLimit`` when the kernel gives no watch;
    ///   ``/MessagePort/PortError/Code/directoryUntrusted``, ``/MessagePort/PortError/Code/descriptorLimit``,
    ///   ``/MessagePort/PortError/Code/systemCallFailed``.
    @discardableResult
    public func watch(
        on loop: ThreadRunLoop = .current, in mode: RunLoopMode = .default, _ handler: @escaping NameWatch.Handler
    ) throws(PortError) -> NameWatch {
        try NameWatch(monitor(), on: loop, in: mode, handler)
    }

    /// Makes the monitor of the names in the directory that is there now.
    func monitor() throws(PortError) -> NameMonitor {
        let directory = try openDirectory()
        return try NameMonitor(directory.path, mayBeShared: directory.mayBeShared, scanning: scanning)
    }
}

extension PortNameServer {
    /// The names that are held now and those that come and go from then on, as an asynchronous sequence.
    ///
    /// ```swift
    /// for try await event in PortNameServer.shared.events { print(event) }
    /// ```
    ///
    /// Order and completeness are those of ``watch(on:in:_:)``. Each iteration has a watch of its own, from its first
    /// element to its end. It has no buffer: what happens while no task asks waits in the kernel. A waiting task blocks
    /// no thread: one thread, shared by all asynchronous calls of the process, watches.
    public var events: NameEvents { NameEvents(server: self) }
}

/// Names that come and go: ``PortNameServer/events``.
public struct NameEvents: AsyncSequence, Sendable {
    /// What the sequence gives.
    public typealias Element = NameEvent
    /// Why an iteration fails, as ``PortNameServer/watch(on:in:_:)`` does. The next call tries again, and nothing is
    /// lost.
    public typealias Failure = PortError

    let server: PortNameServer

    /// Starts to iterate: nothing happens before the first element is asked for.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(server: server) }

    /// Gives one event after the other.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let server: PortNameServer
        private var monitor: NameMonitor?

        init(server: PortNameServer) {
            self.server = server
        }

        /// The next event, suspending the task until there is one.
        ///
        /// - Returns: the event; nil when the task was cancelled.
        public mutating func next() async throws(PortError) -> NameEvent? {
            try await nextEvent()
        }

        /// As above, in the caller's isolation.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(PortError) -> NameEvent? {
            try await nextEvent()
        }

        nonisolated(nonsending) private mutating func nextEvent() async throws(PortError) -> NameEvent? {
            if monitor == nil { monitor = try server.monitor() }
            while !Task.isCancelled, let monitor {
                if let event = try monitor.next() { return event }
                try await TaskWaiter.wait(for: monitor.raw, until: monitor.nextCheck)
            }
            return nil
        }
    }
}

/// A wait for one name: decides when to look it up again, and does so.
final class NameWait: Sendable {
    private struct State: ~Copyable {
        var watch: NameDirectoryWatch
        var mustLookUp = true
        /// When to try again a declared socket that refuses, and the pause before the next time. It has a path before
        /// its supervisor listens, and nothing reports when the supervisor begins to listen: so the socket is tried
        /// again, soon at first, then less often, and no more after a second.
        var nextTry = MonotonicInstant.distantFuture
        var pause = Tuning.declaredPauses.lowerBound

        mutating func noteNoListener(isDeclared: Bool) {
            guard isDeclared, pause <= Tuning.declaredPauses.upperBound else {
                nextTry = .distantFuture
                return
            }
            nextTry = .after(pause)
            pause *= 2
        }
    }

    private let name: PortName  // immutable
    private let file: String  // immutable
    private let server: PortNameServer  // immutable
    private let path: String  // immutable; the directory's
    private let mayBeShared: Bool  // immutable
    private let declaredPath: String  // immutable
    /// Whether to connect to a socket that a supervisor declared for the name, which starts the name's owner.
    private let usesDeclared: Bool  // immutable
    /// Whether it is polled on the I/O thread.
    private let isSearch: Bool  // immutable
    /// The descriptor to wait on: readable while something may have changed.
    let raw: CInt  // immutable; the watch's, which lives as long as this object
    private let state: Mutex<State>

    /// Begins to watch.
    ///
    /// - Throws: as `NameDirectoryWatch.begin`.
    init(for name: PortName, in server: PortNameServer, usesDeclared: Bool = true, isSearch: Bool = false)
        throws(PortError)
    {
        (self.name, self.usesDeclared, self.isSearch) = (name, usesDeclared, isSearch)
        file = name.fileName
        self.server = server
        let directory = try server.openDirectory()
        path = directory.path
        mayBeShared = directory.mayBeShared
        declaredPath = directory.declaredPath(of: name)
        let watch = try NameDirectoryWatch.begin(
            at: directory.path, followsDeclared: usesDeclared, mayBeShared: directory.mayBeShared,
            scanning: server.scanning)
        raw = watch.raw
        state = Mutex(State(watch: watch))
    }

    /// The next poll looks the name up.
    func noteChange() { state.withLock { $0.mustLookUp = true } }

    /// When to look the name up again although nothing has changed.
    var nextCheck: MonotonicInstant { state.withLock { min($0.nextTry, $0.watch.nextCheck) } }

    private func findThere() throws(PortError) -> SendRight? {
        isSearch ? try server.findHere(name, usesDeclared: usesDeclared) : try server.find(name)
    }

    /// Looks the name up, if anything has changed since the last time. Never waits.
    ///
    /// - Parameter isLast: whether to look the name up although the interval has not passed.
    /// - Returns: the right; nil while there is none.
    /// - Throws: as `PortNameServer.waitFor(_:within:)`.
    func poll(isLast: Bool = false) throws(PortError) -> SendRight? {
        let (mustLookUp, isThere) = try state.withLock { (state) throws(PortError) in
            if isLast { state.watch.checkNow() }
            let concerns = if case .files(let files) = try state.watch.changes() { files.contains(file) } else { true }
            let hasChanged = concerns || state.mustLookUp
            if hasChanged { (state.nextTry, state.pause) = (.distantFuture, Tuning.declaredPauses.lowerBound) }
            let mustLookUp = hasChanged || state.nextTry <= .now
            state.mustLookUp = false
            return (mustLookUp, state.watch.names != nil)
        }
        guard mustLookUp else { return nil }
        // A look-up may make the directory; a wait for the name must not.
        if isThere, let right = try findThere() { return right }
        guard usesDeclared else { return nil }
        if !isThere {
            let declared = try TrustedDirectory.existing("declared", in: path, mayBeShared: mayBeShared)
            let right =
                isSearch
                ? try PortNameServer.findDeclaredHere(name, in: declared)
                : try PortNameServer.findDeclared(name, in: declared)
            if let right { return right }
        }
        let isDeclared = (try? sysStatus(atPath: declaredPath)) != nil
        state.withLock { $0.noteNoListener(isDeclared: isDeclared) }
        return nil
    }
}
