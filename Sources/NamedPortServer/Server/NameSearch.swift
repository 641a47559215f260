// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort
import PortSystem
import Synchronization

extension PortNameServer {
    /// Makes a right to a name: to the port that has it, and after that port's end to the next one that gets it.
    ///
    /// Nothing is looked up before the right is used. Then what is sent waits until a port has the name, within the
    /// limit of the call. When the port ends, the right is interrupted, and goes on with the name's next port, which
    /// the kernel reports as soon as it is there:
    ///
    /// - A message that was not sent yet waits for the next port. Without time left:
    ///   ``/MessagePort/PortError/Code/nameWaitTimedOut``.
    /// - A request that was sent fails with ``/MessagePort/PortError/Code/peerDied``;
    ///   ``/MessagePort/PortError/delivery`` says what is known of it. Only a request that is idempotent is sent again.
    /// - When a port refuses this process, or a limit of the port ends the connection, the right is invalid for good. A
    ///   name that leads to no port of this user has no port yet.
    ///
    /// Each right that this returns is one of its own, unequal to others. In a message to another process it becomes a
    /// plain right to the port that has the name then, or a dead one. While it is interrupted and something waits, it
    /// uses two descriptors.
    ///
    /// - Parameter name: the name.
    /// - Returns: the right, ``/MessagePort/SendRight/State/interrupted(_:)`` until it is used.
    /// - Throws: ``/MessagePort/PortError/Code/nameEmpty``, ``/MessagePort/PortError/Code/nameTooLong``,
    ///   ``/MessagePort/PortError/Code/nameHasNUL``.
    public func makeSendRight(reconnectingTo name: String) throws(PortError) -> SendRight {
        SendRight(ReconnectingPort(NameFinder(try PortName(name), self)))
    }
}

/// Finds the port that has a name, at a name server.
private final class NameFinder: PortFinder {
    private let portName: PortName  // immutable
    private let server: PortNameServer  // immutable

    init(_ name: PortName, _ server: PortNameServer) { (portName, self.server) = (name, server) }

    var name: String { portName.string }

    func find() throws(PortError) -> SendRight? {
        do throws(PortError) {
            return try server.find(portName)
        } catch {
            if error.concernsRecord { return nil }
            throw error
        }
    }

    func search(
        after date: MonotonicInstant, isForSender: Bool,
        _ didFind: @escaping @Sendable (Result<SendRight, PortError>) -> Void
    ) throws(PortError) -> Cancellation {
        let wait = try NameWait(for: portName, in: server, usesDeclared: isForSender, isSearch: true)
        let search = NameSearch(wait, after: date, didFind)
        try search.begin(on: IOThread.loop())
        return { search.end() }
    }
}

extension PortError {
    /// Whether a name's file, or what listens at the path in it, is not what it should be: then no port has the name
    /// yet. A port's own refusal comes over a connection.
    fileprivate var concernsRecord: Bool { code == .peerRefused || code == .malformedPacket }
}

/// A search on a run loop: it looks a name up when its file has changed, until a port has it.
private final class NameSearch: Sendable {
    private struct State: Sendable {
        var source: RunLoopSource?
        var alarm: RunLoopTimer?
        var isOver = false
    }

    private let wait: NameWait  // immutable
    private let start: MonotonicInstant  // immutable
    private let didFind: @Sendable (Result<SendRight, PortError>) -> Void  // immutable
    private let state = Mutex(State())
    private let forkGuard = ForkGuard()  // immutable

    init(
        _ wait: NameWait, after date: MonotonicInstant,
        _ didFind: @escaping @Sendable (Result<SendRight, PortError>) -> Void
    ) {
        (self.wait, start, self.didFind) = (wait, date, didFind)
    }

    /// Until its end the loop retains it.
    func begin(on loop: ThreadRunLoop) {
        setAlarm(for: start, on: loop) { [self] in
            let source = RunLoopSource(name: "port name search", descriptor: wait.raw) { self.poll(on: loop) }
            let isOver = state.withLock { state in
                if !state.isOver { state.source = source }
                return state.isOver
            }
            if isOver { return }
            do throws(PortError) {
                try loop.addOrThrow(source, to: .default)
                poll(on: loop)
            } catch {
                if finish() { didFind(.failure(error)) }
            }
        }
    }

    func end() { _ = finish() }

    /// - Returns: false when it was over.
    private func finish() -> Bool {
        if forkGuard.isInherited { return false }
        let old = state.withLock { state in
            let old = state
            state = State(isOver: true)
            return old
        }
        old.source?.invalidate()
        old.alarm?.invalidate()
        return !old.isOver
    }

    private func poll(on loop: ThreadRunLoop) {
        if forkGuard.isInherited || state.withLock({ $0.isOver }) { return }
        do throws(PortError) {
            if let right = try wait.poll() {
                if finish() { didFind(.success(right)) }
            } else {
                setAlarm(for: wait.nextCheck, on: loop) { [self] in poll(on: loop) }
            }
        } catch {
            if error.isOwnShortage || error.code == .sendTimedOut {
                wait.noteChange()
                setAlarm(for: .after(Tuning.timeUntilRetry), on: loop) { [self] in poll(on: loop) }
            } else if error.concernsRecord {
                setAlarm(for: wait.nextCheck, on: loop) { [self] in poll(on: loop) }
            } else if finish() {
                didFind(.failure(error))
            }
        }
    }

    /// Has something done on the loop at a date, in place of what was to be done before.
    private func setAlarm(for date: MonotonicInstant, on loop: ThreadRunLoop, _ act: @escaping @Sendable () -> Void) {
        let made = RunLoopTimer(name: "port name search", fireDate: date) { _ in act() }
        let (old, isOver) = state.withLock { state in
            let old = state.alarm
            state.alarm = state.isOver || date == .distantFuture ? nil : made
            return (old, state.isOver)
        }
        old?.invalidate()
        if !isOver, date != .distantFuture { loop.add(made) }
    }
}
