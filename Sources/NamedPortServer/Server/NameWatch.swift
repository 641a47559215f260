// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort
import PortSystem
import Synchronization

/// Reports to a run loop which names come and go. ``PortNameServer/watch(on:in:_:)`` makes it.
///
/// - Important: Thread safety: any thread.
public final class NameWatch: Sendable {
    /// Gets one event; or why the watch has ended by itself.
    public typealias Handler = @Sendable (Result<NameEvent, PortError>) -> Void

    private let source: RunLoopSource  // guards itself
    /// How long a watch waits before it tries again, when this process has no descriptor or no memory left.
    private static let timeUntilNextTry = Duration.milliseconds(100)

    init(_ follower: NameMonitor, on loop: ThreadRunLoop, in mode: RunLoopMode, _ handler: @escaping Handler)
        throws(PortError)
    {
        let relay = Relay()
        let source = RunLoopSource(
            name: "port names", readiness: { follower.hasMore },
            cancel: { loop, _ in if loop.hasEnded { relay.end() } },
            perform: {
                guard relay.isValid else { return }
                var nextTry = MonotonicInstant.distantFuture
                defer { relay.ring(at: min(nextTry, follower.nextLook), on: loop, in: mode) }
                do throws(PortError) {
                    // The watch may have ended during the call of `next()`.
                    if let event = try follower.next(), relay.isValid { handler(.success(event)) }
                } catch {
                    if error.isOwnShortage {
                        nextTry = .after(Self.timeUntilNextTry)
                    } else if relay.end() {
                        handler(.failure(error))
                    }
                }
            })
        relay.source.withLock { $0 = source }
        self.source = source
        self.relay = relay
        do throws(PortError) {
            try Self.begin(source, watching: follower.raw, on: loop, in: mode)
        } catch {
            relay.end()
            throw error
        }
        if loop.hasEnded { relay.end() }
    }

    private static func begin(
        _ source: RunLoopSource, watching descriptor: CInt, on loop: ThreadRunLoop, in mode: RunLoopMode
    ) throws(PortError) {
        do throws(SystemError) {
            try source.watch(descriptor)
        } catch {
            throw PortError(error)
        }
        try loop.addOrThrow(source, to: mode)
        source.ring()
    }

    private let relay: Relay  // guards itself

    /// Gives the source's routine access to the source.
    private final class Relay: Sendable {
        let source = Mutex<RunLoopSource?>(nil)
        private let alarm = Mutex<RunLoopTimer?>(nil)

        var isValid: Bool { source.withLock { $0 }?.isValid == true }

        /// Has a timer signal the source at a date, in place of the date before.
        func ring(at date: MonotonicInstant, on loop: ThreadRunLoop, in mode: RunLoopMode) {
            var made: RunLoopTimer?
            if date != .distantFuture, isValid {
                made = RunLoopTimer(name: "port names", fireDate: date) { [weak self] _ in
                    self?.source.withLock { $0 }?.ring()
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
        func end() -> Bool {
            guard let source = source.withLock({ $0.take() }) else { return false }
            source.invalidate()
            alarm.withLock { $0.take() }?.invalidate()
            return true
        }
    }

    /// Whether it may still report events.
    public var isValid: Bool { source.isValid }

    /// Ends the watch. After a call on the loop's thread no handler begins. A call on another thread does not wait for
    /// the loop: a handler that is running goes on, and so does one that the loop is about to call.
    public func invalidate() {
        relay.end()
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
        try NameWatch(follower(), on: loop, in: mode, handler)
    }

    /// Makes the monitor of the names in the directory that is there now.
    func follower() throws(PortError) -> NameMonitor {
        let directory = try openDirectory()
        return try NameMonitor(directory.path, mayBeShared: directory.mayBeShared, looks: looks)
    }
}
