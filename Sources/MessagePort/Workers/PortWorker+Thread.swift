// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore

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
            guard let record, record.takeCheckIn(message) else { return false }
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
