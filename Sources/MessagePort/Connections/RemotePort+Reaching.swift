// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
//   not reached ──connected──▶ reached         both for ever; a full backlog, or a want of descriptors or memory, is
//        ╰──────nobody there──▶ failed         neither: the next use tries again

import PortSystem
import RunLoopCore
import Synchronization

extension RemotePort {
    /// How long a task waits before it tries again to connect where too many wait to be accepted: nothing tells of a
    /// place.
    static let timeUntilRetry = Duration.milliseconds(10)

    /// The connection, if there is one already.
    package var connection: SocketConnection? { made.object }

    /// Whether the port is known to be gone. Does not connect.
    package var isDead: Bool {
        if isInherited { return true }
        return link.withLock { $0.failure != nil } || connection?.isDeadName == true
    }

    package func isFoundDead() -> Bool {
        if isInherited { return true }
        // What cannot be found out now is not known to be gone.
        return (try? reachedUnlessDead()).map { $0?.isFoundDead() ?? true } ?? false
    }

    package func reach(until deadline: MonotonicInstant) throws(PortError) { _ = try reached(until: deadline) }

    nonisolated(nonsending) package func reach(waiting wait: SendWait) async throws(PortError) {
        _ = try await reached(waiting: wait)
    }

    /// The connection, made now if there is none yet.
    ///
    /// - Parameter deadline: how long to wait while too many others wait to be accepted.
    /// - Returns: the connection, the same each time.
    /// - Throws: `deadName` when nobody is there; `peerRefused`, `malformedPacket` and `systemCallFailed` when nobody
    ///   can be reached there; these stay. `sendTimedOut`, `descriptorLimit`; `systemCallFailed` when no memory is left.
    func reached(until deadline: MonotonicInstant = .distantPast) throws(PortError) -> SocketConnection {
        try checkProcess()
        if let known = connection { return known }
        if let failure = link.withLock({ $0.failure }) { throw failure }
        let outcome = Result { () throws(PortError) in try connect(until: deadline) }
        // Of threads that come at once the first decides; the others' connections go, after the lock is free. Also when it has
        // found nobody: with a connection the port would be dead and alive.
        let decided = link.withLock { link -> Result<SocketConnection, PortError> in
            if let connection { return .success(connection) }
            if let failure = link.failure { return .failure(failure) }
            switch outcome {
            case .success(let connection): made.set(connection)
            case .failure(let error): if !error.mayPass { link.failure = error }
            }
            return outcome
        }
        return try decided.get()
    }

    /// As above, in a task, which holds no thread while it waits.
    nonisolated(nonsending) func reached(waiting wait: SendWait) async throws(PortError) -> SocketConnection {
        while true {
            do throws(PortError) {
                return try reached()
            } catch {
                guard error.code == .sendTimedOut, wait.mayWait else { throw error }
            }
            let timer = RunLoopTimer(after: Self.timeUntilRetry) { _ in wait.wake() }
            try IOThread.loop().add(timer)
            defer { timer.invalidate() }
            try await wait.wait()
        }
    }

    /// The connection; nil when there will never be one.
    func reachedUnlessDead() throws(PortError) -> SocketConnection? {
        do throws(PortError) {
            return try reached()
        } catch {
            if error.mayPass { throw error }
            return nil
        }
    }

    private func connect(until deadline: MonotonicInstant) throws(PortError) -> SocketConnection {
        switch try ProcessEndpoints.connect(toPath: portAddress.path, until: deadline) {
        case .connected(let socket, let peer): return try SocketConnection(socket, port: nil, peer: peer)
        case .busy: throw PortError(.sendTimedOut, subject: .path(portAddress.path))
        case .dead: throw PortError(.deadName)
        }
    }
}

extension PortError {
    /// Whether the next attempt to connect may succeed.
    fileprivate var mayPass: Bool {
        switch code {
        case .sendTimedOut, .descriptorLimit, .forkedProcess: true
        default: systemError?.isMemoryShortage == true
        }
    }
}
