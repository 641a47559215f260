// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore

/// A worker that this process has launched, a thread or a child process: its check-in, the right to its port, its end.
///
/// A worker begins with one right, to ``port``, and checks in there: it sends a message with the id
/// ``MachMessage/checkIn`` and its own port as the reply port (``SendRight/checkIn(_:components:within:)``). Wait for
/// that with `checkIn(within:)`. What else the worker sends there comes to ``port``: schedule it, or receive from it.
/// `Docs/CheckIn.md` describes the protocol.
///
/// A worker belongs to the object: when the last reference to it goes, the port is invalidated, a thread is asked to
/// stop, and a process is killed and waited for, which takes as long as the kernel needs to end it. So no worker
/// outlives its launcher unnoticed. A process that now belongs to another user cannot be killed, and is left alone. End
/// workers with `shutDown(asking:within:)`: that is also a last use, up to which an optimized build keeps the variable
/// alive. Without it, the worker may end as soon as its variable is no longer used, although its rights are: then keep
/// it in a property.
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
