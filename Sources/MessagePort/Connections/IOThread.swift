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
        var rooms: RoomSet?
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
                if let rooms = receiver.rooms { _ = unsafe Unmanaged.passRetained(rooms) }
            }
            receiver = Receiver(thread: made)
            return made.loop
        }
    }

    /// The set in which connections wait for room on its loop; made when it is first needed, and retained.
    package static func rooms() throws(PortError) -> RoomSet {
        let loop = try loop()
        if let rooms = receiver.withLock({ $0?.rooms }) { return rooms }
        return try making.withLock { (_) throws(PortError) in
            if let rooms = receiver.withLock({ $0?.rooms }) { return rooms }
            let made = try RoomSet(watchedOn: loop)
            receiver.withLock { $0?.rooms = made }
            return made
        }
    }

    /// Locked while the set is made, so that there is only one.
    private static let making = Mutex(())
}

/// The connections of this process that have a backlog, until there is room for it: one set for all of them, so that a
/// peer that does not read takes no descriptor for each of its connections.
package final class RoomSet: SourceRoutine {
    private let set: EpollSet  // immutable
    private let state = Mutex((lastKey: UInt64(0), waiting: [UInt64: SocketConnection]()))

    /// Makes a set that a loop watches from now on.
    init(watchedOn loop: ThreadRunLoop) throws(PortError) {
        set = try PortError.converting(EpollSet())
        let source = RunLoopSource(name: "port room", keepsModeAlive: false, routine: self)
        try loop.addOrThrow(source, to: .default)
        do throws(SystemError) {
            try source.watch(pollable: set.raw)
        } catch {
            source.invalidate()
            throw PortError(error)
        }
    }

    /// Has a connection send its backlog when its socket has room, or the peer is gone. It is retained until then.
    ///
    /// - Throws: `ENOSPC`, `ENOMEM`: then it does not wait.
    func wait(for connection: SocketConnection) throws(SystemError) {
        try state.withLock { (state) throws(SystemError) in
            state.lastKey += 1
            try set.add(connection.descriptor.rawValue, connection.roomEvents, key: state.lastKey)
            state.waiting[state.lastKey] = connection
        }
    }

    package func perform() -> SourceOutcome {
        for report in set.wait(until: .distantPast) {
            guard let connection = state.withLock({ $0.waiting.removeValue(forKey: report.key) }) else { continue }
            // A connection is not added again before it is notified.
            set.remove(connection.descriptor.rawValue)
            connection.roomDidCome()
        }
        return .handled
    }
}
