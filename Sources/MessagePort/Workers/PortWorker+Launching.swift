// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import PortSystem
import RunLoopCore

extension PortWorker {
    /// Launches a child process that gets the right to a port of the caller's, and checks in there.
    ///
    /// The right needs no name in the file system: the child inherits one end of a connection to the port, and finds it
    /// with ``SendRight/bootstrap()``. Besides that descriptor it has standard input, output and error and no others.
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
            let sockets = try port.localPort.openSockets()
            let (end, process) = try start(program)
            do throws(PortError) {
                try record.watch(process: process)
                let child = PeerIdentity(processID: process, userID: sysUserID(), groupID: sysGroupID())
                let connection = try SocketConnection(
                    end, port: port.localPort, peer: child, opened: .launched(record.process, end))
                try sockets.add(connection)
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

    /// Starts the program with one end of a new connection.
    ///
    /// - Returns: the other end, and the process's id.
    private static func start(_ program: WorkerProgram) throws(PortError) -> (SharedDescriptor, pid_t) {
        do throws(SystemError) {
            let (ours, theirs) = try sysPacketSocketPair()
            var environment = program.environment
            // The sockets that a supervisor handed to this process are not for the worker.
            for variable in SupervisorVariables.all where environment.index(forKey: variable) == nil {
                environment.updateValue(nil, forKey: variable)
            }
            environment[Bootstrap.variable] = try Bootstrap.value(for: theirs)
            let inherited = [program.standardInput, program.standardOutput, program.standardError, theirs]
            let process = try sysSpawn(
                program.path, arguments: program.arguments, environment: environment, in: program.directory,
                descriptors: inherited.map { $0?.rawValue })
            withExtendedLifetime(inherited) {}
            return (ours, process)
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

// MARK: - Thread

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
