// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import PortSystem
public import RunLoopCore
import Synchronization

/// A worker that this process has launched, a thread or a child process: its check-in, the right to its port, its end.
///
/// A worker begins with one right, to ``port``, and checks in there: it sends a message with the id
/// ``MachMessage/checkIn`` and its own port as the reply port (`SendRight.checkIn(_:components:within:)`). Wait for
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

// MARK: - Launching

extension PortWorker {
    /// Launches a child process that gets the right to a port of the caller's, and checks in there.
    ///
    /// The right needs no name: the child inherits one end of a connection to the port, and finds it with
    /// ``SendRight/bootstrap()``. Besides that descriptor it has standard input, output and error and no others.
    /// No signal is blocked or ignored in it. When this process ends, or invalidates ``port``, the right is a dead name
    /// in the child, which may ask for a notice of that.
    ///
    /// Returns when the program has been started, without waiting for it.
    ///
    /// - Parameters:
    ///   - program: the program, and what it starts with.
    ///   - queueLimit: how many messages of the worker may wait at ``port``: those that it sends before it checks in,
    ///     too.
    ///   - handler: called for each message of the worker but its check-in, where ``port`` is scheduled.
    /// - Returns: the worker. It is killed when the last reference to it is released.
    /// - Throws: ``PortError/Code/workerNotStarted``, with the kernel's reason: `ENOENT`, `EACCES` and others of
    ///   `execve(2)`, `EAGAIN` when the system gives no process, `EMFILE` without descriptors, `EINVAL` when an
    ///   argument or a variable of the environment cannot be one. No process is left then.
    public static func launchProcess(
        _ program: WorkerProgram, queueLimit: Int = MachPort.defaultQueueLimit, handler: MachPort.Handler? = nil
    ) throws(PortError) -> PortWorker {
        let record = WorkerRecord()
        // The check-in may retain its connection, and that its port.
        let port = MachPort(queueLimit: queueLimit, handler: handler) { [weak record] message in
            record?.acceptCheckIn(message) ?? false
        }
        do throws(PortError) {
            let bootstrap = try PortBootstrap(to: port)
            let process = try start(program, bootstrap)
            do throws(PortError) {
                try record.watch(process: process)
                try bootstrap.connect(process: process, watchedBy: record.process)
            } catch {
                // By its number only while there is no process descriptor.
                if record.process == nil { sysKillAndReap(process) } else { record.killProcess() }
                throw error
            }
            return PortWorker(.process(id: process), port: port, record: record)
        } catch {
            port.invalidate()
            throw PortError(.workerNotStarted, system: error.systemError, subject: .path(program.path))
        }
    }

    /// Starts the program with one end of a connection.
    ///
    /// - Returns: the process's id.
    private static func start(
        _ program: WorkerProgram, _ bootstrap: borrowing PortBootstrap
    ) throws(PortError) -> pid_t {
        do throws(SystemError) {
            var environment = program.environment
            // The sockets that a supervisor handed to this process are not for the worker.
            for variable in SupervisorVariables.all where environment.index(forKey: variable) == nil {
                environment.updateValue(nil, forKey: variable)
            }
            for (name, value) in bootstrap.environment() { environment[name] = value }
            let standard = [program.standardInput, program.standardOutput, program.standardError]
            defer { withExtendedLifetime(standard) {} }
            return try sysSpawn(
                program.path, arguments: program.arguments, environment: environment, in: program.directory,
                descriptors: standard.map { $0?.rawValue } + [bootstrap.descriptor])
        } catch {
            throw PortError(error)
        }
    }
}

extension WorkerRecord {
    /// Records the process that was started.
    fileprivate func watch(process: pid_t) throws(PortError) {
        guard let launched = try PortError.converting(LaunchedProcess.watching(child: process)) else {
            return processDidEnd()
        }
        setProcess(launched)
    }
}

extension PortWorker {
    /// Launches a thread that gets the right to a port of the caller's, and checks in there. Listings 3-12 and 3-14 of
    /// Apple's Run Loops chapter: `launchThread` and `LaunchThreadWithPort`.
    ///
    /// The body is called first on the new thread. It makes a port, schedules it there, checks in with it, and returns;
    /// from then on the thread's run loop serves the port. The thread ends when that port is invalidated, when the body
    /// throws, or when it is shut down. Signals sent to the process are left to other threads.
    ///
    /// Returns when the thread is there, without waiting for the body.
    ///
    /// - Parameters:
    ///   - name: the thread's name in `ps`, `top`, debuggers and errors.
    ///   - stackSize: the size of its stack in bytes; nil for the system's default.
    ///   - queueLimit: how many messages of the worker may wait at ``port``: those that it sends before it checks in,
    ///     too.
    ///   - handler: called for each message of the worker but its check-in, where ``port`` is scheduled.
    ///   - body: the first code on the thread; it gets the right to ``port``.
    /// - Returns: the worker. It ends with the last reference to it.
    /// - Throws: ``PortError/Code/workerNotStarted`` when the system gives no thread (`EAGAIN`), or accepts no stack of
    ///   that size (`EINVAL`).
    public static func launchThread(
        name: String = "port worker", stackSize: Int? = nil, queueLimit: Int = MachPort.defaultQueueLimit,
        handler: MachPort.Handler? = nil, _ body: @escaping @Sendable (_ parent: SendRight) throws -> Void
    ) throws(PortError) -> PortWorker {
        let record = WorkerRecord()
        let thread = try start(name: name, stackSize: stackSize)
        let port = MachPort(queueLimit: queueLimit, handler: handler) { [weak thread, weak record] message in
            guard let record, record.acceptCheckIn(message) else { return false }
            if let own = message.replyPort?.destination as? LocalPort {
                _ = own.whenDead { [weak thread] in thread?.stop() }
            }
            return true
        }
        let parent = port.makeSendRight()
        let identity = WorkerIdentity.thread(name: name, id: thread.loop.threadID)
        let worker = PortWorker(identity, port: port, record: record, thread: thread)
        // Cancelled by the loop's end, whatever its cause.
        thread.loop.add(RunLoopSource(cancel: { _, _ in record.threadDidEnd() }, perform: {}))
        try? thread.perform { [thread] in
            do {
                try body(parent)
            } catch {
                record.fail("\(error)")
                thread.stop()
            }
        }
        return worker
    }

    private static func start(name: String, stackSize: Int?) throws(PortError) -> ResidentThread {
        do throws(SystemError) {
            return try ResidentThread(name: name, stackSize: stackSize)
        } catch {
            throw PortError(.workerNotStarted, system: error, subject: .name(name))
        }
    }
}
