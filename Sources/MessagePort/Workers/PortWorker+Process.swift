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
    /// - Returns: the worker. It is killed when the last reference to it goes.
    /// - Throws: ``PortError/Code/workerNotStarted``, with the kernel's reason: `ENOENT`, `EACCES` and others of
    ///   `execve(2)`, `EAGAIN` when the system gives no process, `EMFILE` without descriptors, `EINVAL` when an argument
    ///   or a variable of the environment cannot be one. No process is left then.
    public static func launchProcess(
        _ program: WorkerProgram, queueLimit: Int = MachPort.defaultQueueLimit, handler: MachPort.Handler? = nil
    ) throws(PortError) -> PortWorker {
        let record = WorkerRecord()
        // The check-in may retain its connection, and that its port.
        let port = MachPort(queueLimit: queueLimit, handler: handler) { [weak record] message in
            record?.takeCheckIn(message) ?? false
        }
        do throws(PortError) {
            let sockets = try port.core.openSockets()
            let (end, process) = try start(program)
            do throws(PortError) {
                try record.watch(process: process)
                let child = PeerIdentity(processID: process, userID: sysUserID(), groupID: sysGroupID())
                try sockets.add(SocketConnection(end, port: port.core, peer: child))
            } catch {
                // By its number only while there is nothing better.
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
        do throws(SystemError) {
            guard let launched = try LaunchedProcess.watching(child: process) else { return processIsGone() }
            setProcess(launched)
        } catch {
            throw PortError(error)
        }
    }
}
