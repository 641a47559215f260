// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import PortSystem
public import RunLoopCore
import Synchronization

/// A worker that this process has launched, a thread or a child process: its check-in, the right to its port, its end.
///
/// A worker begins with one right, to ``port``, and checks in there: it sends a message with the id
/// ``MachMessage/checkIn`` and its own port as the reply port (``SendRight/checkIn(_:components:within:)``). Wait for
/// that with `checkIn(within:)`. What else the worker sends there comes to ``port``: schedule it, or receive from it.
/// `Docs/CheckIn.md` describes the protocol.
///
/// A worker belongs to the object: when the last reference to it is released, the port is invalidated, a thread is
/// asked to stop, and a process is killed and waited for, which takes as long as the kernel needs to end it. So no
/// worker outlives its launcher unnoticed. A process that now belongs to another user cannot be killed, and is left
/// alone. End workers with `shutDown(asking:within:)`: that is also a last use, up to which an optimized build keeps
/// the variable alive. Without it, the worker may end as soon as its variable is no longer used, although its rights
/// are: then keep it in a property.
///
/// A forked child's copy of a worker is inert: the child has launched none. Its calls throw
/// ``PortError/Code/forkedProcess``, its optional properties are nil, and its release leaves the worker alone.
///
/// - Important: Thread safety: any thread.
public final class PortWorker: Sendable {
    /// Identifies the worker.
    public let identity: WorkerIdentity

    /// The port to which the worker has a right from its beginning. The check-in itself never comes to it.
    public let port: MachPort

    let record: WorkerRecord  // guards itself
    let thread: ResidentThread?  // immutable; nil for a process

    init(_ identity: WorkerIdentity, port: MachPort, record: WorkerRecord, thread: ResidentThread? = nil) {
        self.identity = identity
        self.port = port
        self.record = record
        self.thread = thread
    }

    deinit {
        port.invalidate()
        record.killProcess()
        guard record.isInherited, let thread else { return }
        // A forked child has no copy of the thread, whose locks may be held forever there.
        // SAFETY: the reference is leaked on purpose: the thread is never asked to end.
        _ = unsafe Unmanaged.passRetained(thread)
    }

    /// The right to the port with which the worker checked in; nil before that. It stays when the worker ends, as a
    /// dead name.
    public var sendRight: SendRight? { record.right }

    /// The message with which the worker checked in, for its other content; nil before that.
    public var checkInMessage: MachMessage? { record.checkIn }

    /// How the worker ended; nil while it runs. For a process this asks the kernel.
    public var exit: WorkerExit? {
        record.reap()
        return record.exit
    }
}

extension PortWorker: Hashable {
    /// Workers are equal when they are the same object.
    public static func == (left: PortWorker, right: PortWorker) -> Bool { left === right }

    /// Hashes the object's identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension PortWorker: CustomStringConvertible {
    /// "worker" and its identity.
    public var description: String { "worker \(identity)" }
}

// MARK: - CheckIn

extension PortWorker {
    /// Waits until the worker has checked in, and returns the right to its port.
    ///
    /// The calling thread's run loop waits in a private mode, in which nothing else runs. Several threads may wait, and
    /// later callers are answered at once. What the worker sends before it checks in is queued at ``port``. A worker
    /// that fills that queue waits there, and checks in once messages were received.
    ///
    /// - Parameter limit: the longest time to wait; zero or less checks once.
    /// - Returns: the right to the worker's port.
    /// - Throws: ``PortError/Code/workerExited``, with the way it ended, when the worker ended without checking in;
    ///   ``PortError/Code/checkInTimedOut`` when the limit has passed: the worker keeps running, and the call can be
    ///   repeated; ``PortError/Code/descriptorLimit`` and ``PortError/Code/systemCallFailed`` when the worker cannot be
    ///   watched; ``PortError/Code/forkedProcess``.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    public func checkIn(within limit: Duration) throws(PortError) -> SendRight {
        try Self.checkIn([self], until: .after(limit), WorkerWait())[0]
    }

    /// Suspends the task until the worker has checked in, and returns the right to its port.
    ///
    /// It starts a thread that waits meanwhile.
    ///
    /// - Parameter limit: the longest time to wait.
    /// - Returns: the right to the worker's port.
    /// - Throws: what the blocking form throws; `CancellationError` when the task was cancelled: the worker keeps
    ///   running.
    nonisolated(nonsending) public func checkIn(within limit: Duration) async throws -> SendRight {
        try await waitOffThePool { [self] wait in
            try Self.checkIn([self], until: .after(limit), wait)[0]
        }
    }

    /// Waits until all have checked in, or one has ended without doing so.
    ///
    /// - Returns: the rights to the workers' ports.
    static func checkIn(_ workers: [PortWorker], until deadline: MonotonicInstant, _ wait: WorkerWait)
        throws(PortError) -> [SendRight]
    {
        for worker in workers { try worker.record.checkProcess() }
        func mustWait() -> Bool {
            let missing = workers.filter { $0.sendRight == nil }
            return !missing.isEmpty && missing.allSatisfy { $0.record.exit == nil }
        }
        if mustWait() { try wait.wait(for: workers, until: deadline, while: mustWait) }
        var rights: [SendRight] = []
        var late: PortError?
        for worker in workers {
            switch worker.outcome() {
            case .success(let right): rights.append(right)
            // Report the one that has ended, not those that would have come later.
            case .failure(let error) where error.code == .workerExited: throw error
            case .failure(let error): late = late ?? error
            }
        }
        if let late { throw late }
        return rights
    }

    /// The right, or why there is none.
    private func outcome() -> Result<SendRight, PortError> {
        let exit = record.exit
        // A worker may have checked in and ended at once: then its message is still there.
        if exit != nil, sendRight == nil { receiveLastMessages() }
        if let right = sendRight { return .success(right) }
        return .failure(PortError(exit == nil ? .checkInTimedOut : .workerExited, subject: .worker(identity, exit)))
    }

    /// Receives what a worker that has ended sent before, up to its check-in, or as far as there is room.
    private func receiveLastMessages() {
        repeat {
            port.localPort.receiveFromSockets()
        } while sendRight == nil && port.localPort.hasRoomForSockets() && pollUnreadMessages()
    }

    /// Whether the process's connection has unread data, or has ended.
    private func pollUnreadMessages() -> Bool {
        guard case .process(let id) = identity, let sockets = port.localPort.sockets else { return false }
        let members = sockets.state.withLock { Array($0.members.values) }
        guard let connection = members.first(where: { $0.peer.processID == id && !$0.isClosed }) else { return false }
        let events = try? sysPoll(connection.descriptor.rawValue, .readable, until: .distantPast)
        return events?.isEmpty == false
    }
}

// MARK: - Exit

extension PortWorker {
    /// Blocks until the worker has ended: the thread is gone, or the process has been waited for.
    ///
    /// Runs no loop. Several threads may wait. Traps on the worker's own thread.
    ///
    /// - Parameter limit: the longest time; zero or less only checks.
    /// - Returns: how the worker ended; nil when it still runs.
    @available(*, noasync, message: "It blocks the thread. Use `exited()` to suspend the task instead.")
    public func waitForExit(within limit: Duration) -> WorkerExit? {
        waitForExit(until: limit <= .zero ? .distantPast : .after(limit))
    }

    func waitForExit(until deadline: MonotonicInstant) -> WorkerExit? {
        if record.isInherited { return nil }
        if let thread {
            let limit: Duration? = deadline == .distantFuture ? nil : MonotonicInstant.now.duration(to: deadline)
            return thread.join(within: limit) ? record.exit : nil
        }
        if let process = record.process, record.exit == nil {
            _ = try? sysPoll(process.rawValue, .readable, until: deadline)
        }
        return exit
    }

    /// Suspends the task until the worker has ended.
    ///
    /// It starts a thread that waits meanwhile.
    ///
    /// - Returns: how the worker ended.
    /// - Throws: `CancellationError` when the task was cancelled: the worker keeps running; ``PortError`` when the
    ///   worker cannot be watched; ``PortError/Code/forkedProcess``.
    nonisolated(nonsending) public func exited() async throws -> WorkerExit {
        try record.checkProcess()
        return try await waitOffThePool { [self] wait in
            try wait.wait(for: [self], until: .distantFuture, while: { record.exit == nil })
            guard let exit = record.exit else { throw CancellationError() }
            _ = thread?.join()
            return exit
        }
    }

    /// Asks for one notice, on a run loop, when the worker has ended.
    ///
    /// The end of a process is noticed while a loop with such a notice runs, or when a call waits or asks for it. A
    /// notice does not keep a run of the loop alive. A loop that ends drops its notices.
    ///
    /// - Parameters:
    ///   - loop: the loop on which to call the handler.
    ///   - mode: the mode in which to call the handler.
    ///   - handler: called once on the loop's thread; soon when the worker has ended already.
    /// - Throws: ``PortError/Code/descriptorLimit``, ``PortError/Code/systemCallFailed``,
    ///   ``PortError/Code/forkedProcess``: no notice comes then.
    public func notifyWhenExited(
        on loop: ThreadRunLoop, in mode: RunLoopMode = .common, _ handler: @escaping @Sendable (WorkerExit) -> Void
    ) throws(PortError) {
        try record.checkProcess()  // before the loop's lock is acquired
        let notice = LoopNotification<WorkerExit>(on: loop, in: mode, handler)
        do throws(PortError) {
            try record.awaitEnd(notice)
        } catch {
            notice.cancel()
            throw error
        }
    }

    /// Asks for one notice, on the current thread's run loop, when the worker has ended. See
    /// ``notifyWhenExited(on:in:_:)``.
    ///
    /// - Parameters:
    ///   - mode: the mode in which to call the handler.
    ///   - handler: called once on this thread; soon when the worker has ended already.
    /// - Throws: as ``notifyWhenExited(on:in:_:)``.
    @available(*, noasync, message: "A task has no thread of its own: use `notifyWhenExited(on:)`.")
    public func notifyWhenExited(
        in mode: RunLoopMode = .common, _ handler: @escaping @Sendable (WorkerExit) -> Void
    ) throws(PortError) {
        try notifyWhenExited(on: .current, in: mode, handler)
    }
}

// MARK: - Shutdown

extension PortWorker {
    /// Ends the worker in order, and waits until it is gone.
    ///
    /// First it sends the worker the message, if there is one and the worker has checked in; the message waits for
    /// room. A worker that has not ended when the limit has passed is stopped: a thread stops after its current work, a
    /// process gets `SIGTERM`. A process that runs on until the limit has passed once more is killed. Then ``port`` is
    /// invalidated: unreceived messages of the worker bounce. May be called again, also by several threads. Traps on
    /// the worker's own thread.
    ///
    /// After the message was sent, the calling thread's run loop waits in a private mode, in which nothing else runs.
    /// What the worker sends before it leaves comes to the queue of ``port`` meanwhile, as far as there is room. To
    /// receive it, schedule the port on another thread.
    ///
    /// - Parameters:
    ///   - message: what makes the worker leave, as it agreed with its launcher; nil to stop it at once.
    ///   - limit: how long each of the two or three steps may take.
    /// - Returns: how the worker ended.
    /// - Throws: ``PortError/Code/workerStillRunning`` when a thread does not return to its loop in time; it ends when
    ///   it does. For a process, when the kernel does not end it in time. ``PortError/Code/forkedProcess``.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    @discardableResult
    public func shutDown(asking message: MachMessage? = nil, within limit: Duration = .seconds(5)) throws(PortError)
        -> WorkerExit
    {
        try Self.shutDown([self], asking: message, within: limit)[0]
    }

    /// Ends the worker in order, and suspends the task until it is gone.
    ///
    /// It starts a thread that does so meanwhile. Cancelling the task changes nothing: the call waits for an end that
    /// has begun.
    ///
    /// - Parameters:
    ///   - message: what makes the worker leave, as it agreed with its launcher; nil to stop it at once.
    ///   - limit: how long each of the two or three steps may take.
    /// - Returns: how the worker ended.
    /// - Throws: ``PortError``, as the blocking form; `systemCallFailed` when the system gives no thread: nothing was
    ///   done then.
    @discardableResult
    nonisolated(nonsending) public func shutDown(
        asking message: MachMessage? = nil, within limit: Duration = .seconds(5)
    )
        async throws -> WorkerExit
    {
        try await Self.shutDownOffThePool([self], asking: message, within: limit)[0]
    }

    /// Ends several workers, all at once, on a separate thread.
    nonisolated(nonsending) static func shutDownOffThePool(
        _ workers: [PortWorker], asking message: MachMessage?, within limit: Duration
    ) async throws -> [WorkerExit] {
        // As a `Result`, so that an error is reported even when the task was cancelled, too.
        let result = try await waitOffThePool { _ in
            Result { () throws(PortError) in try shutDown(workers, asking: message, within: limit) }
        }
        return try result.get()
    }

    /// Ends several workers, all at once.
    static func shutDown(_ workers: [PortWorker], asking message: MachMessage?, within limit: Duration)
        throws(PortError) -> [WorkerExit]
    {
        for worker in workers { try worker.record.checkProcess() }
        defer { for worker in workers { worker.port.invalidate() } }
        if let message { ask(workers, message, until: .after(limit)) }
        for signal in [SIGTERM, SIGKILL] {
            let running = workers.filter { $0.exit == nil }
            let deadline = MonotonicInstant.after(limit)
            for worker in running { worker.requestStop(signal) }
            for worker in running { _ = worker.waitForExit(until: deadline) }
        }
        var exits: [WorkerExit] = []
        for worker in workers {
            // A thread records its end a moment before it is gone.
            guard worker.exit != nil, let exit = worker.waitForExit(until: .after(limit)) else {
                throw PortError(.workerStillRunning, subject: .worker(worker.identity))
            }
            exits.append(exit)
        }
        return exits
    }

    private func requestStop(_ signal: CInt) {
        thread?.stop()
        try? record.process?.signal(signal)
    }
}
