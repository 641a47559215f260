// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

extension PortSockets {
    /// Accepts the connections that wait.
    func acceptAll(for sink: any MessageSink) {
        for _ in 0..<Tuning.acceptBudget {
            guard acceptOne(for: sink) else { return }
        }
    }

    /// - Returns: whether there may be more.
    private func acceptOne(for sink: any MessageSink) -> Bool {
        var client: SocketConnection?
        let mayHaveMore = acceptOne(for: sink, &client)
        // Most clients send at once: their message is received in this pass.
        client?.receive(into: sink)
        return mayHaveMore
    }

    private func acceptOne(for sink: any MessageSink, _ client: inout SocketConnection?) -> Bool {
        sink.willAccept()
        defer { sink.didAccept() }
        do throws(SystemError) {
            guard let accepted = try accept() else { return false }
            let mayStay = DescriptorShares().admits(accepted.raw)
            let socket = SharedDescriptor(connection: accepted)
            guard mayStay else {
                SocketConnection.sendRefusal(.descriptorLimit, to: socket)
                return true
            }
            guard let connection = try? SocketConnection(socket, port: sink) else { return true }
            // A peer that is not admitted must not begin to talk: checked before the first message is read.
            guard sink.peerRules.policy.admits(ConnectingPeer(connection.peer, on: socket)) else {
                SocketConnection.sendRefusal(.peerRefused, to: socket)
                return true
            }
            if let refusal = refusal(adding: connection) {
                SocketConnection.sendRefusal(refusal, to: socket)
                return true
            }
            client = connection
            return true
        } catch {
            // Without a descriptor the connection would wait, and be reported, endlessly: accept it with the spare one.
            guard error.isDescriptorLimit else {
                // The client waits, and would be reported endlessly.
                _ = try? IOThread.loop()
                pauseListener()
                return false
            }
            let isRefused = ReservedDescriptor.shared.lend { refuseOne() }
            guard ReservedDescriptor.shared.isMissing else { return isRefused }
            // The next accepted connection would take the number that becomes free when the refused one is closed.
            pauseListener()
            return false
        }
    }

    /// Stops watching the listener for a moment, if there is a thread to resume it. None is started for this: a loop
    /// cannot begin to sleep when no descriptor is left.
    private func pauseListener() {
        // No thread could be started: this one pauses, rather than poll the listener endlessly.
        guard let loop = IOThread.startedLoop else { return sysSleep(Tuning.timeUntilRetry) }
        let isListenerPaused = state.withLock { state in
            guard !state.isListenerPaused, let listener = state.listener?.descriptor.raw else { return false }
            state.isListenerPaused = (try? epoll.modify(listener, [], key: Self.listenerKey)) != nil
            return state.isListenerPaused
        }
        guard isListenerPaused else { return }
        loop.add(RunLoopTimer(after: Tuning.timeUntilRetry) { [weak self] _ in self?.resumeListener() })
    }

    private func resumeListener() {
        ReservedDescriptor.shared.restore()
        state.withLock { state in
            state.isListenerPaused = false
            guard let listener = state.listener?.descriptor.raw else { return }
            try? epoll.modify(listener, .readable, key: Self.listenerKey)
        }
    }

    /// - Returns: why the connection is not kept open.
    private func refusal(adding connection: SocketConnection) -> PortError.Code? {
        do throws(PortError) {
            try add(connection, isLimited: true)
            return nil
        } catch {
            // To the peer, any other refusal of the kernel means that this process has no resources for it.
            return error.code == .tooManyConnections ? error.code : .descriptorLimit
        }
    }

    private func accept() throws(SystemError) -> FileDescriptor? {
        // Under the lock, so that the listener is not closed, and its number reused, before the call.
        let result = state.withLock { state -> Result<CInt?, SystemError> in
            guard let number = state.listener?.descriptor.raw else { return .success(nil) }
            do throws(SystemError) {
                return .success(try sysAccept(number)?.release())
            } catch {
                return .failure(error)
            }
        }
        return try result.get().map { FileDescriptor(owning: $0) }
    }

    /// Accepts a connection only to refuse it because no descriptor is left.
    private func refuseOne() -> Bool {
        guard let accepted = try? accept() else { return false }
        // Closed here when it holds no data, so that the spare descriptor exists again when this returns. Data from the
        // peer may delay the thread that closes it: then the spare one is made again at one of the next polls.
        SocketConnection.sendRefusal(.descriptorLimit, to: SharedDescriptor(connection: accepted))
        return true
    }
}

/// Which of a port's connections is read without asking the kernel for the others: decides, does nothing else.
///
/// Mostly one peer talks at a time, and waits for an answer before it sends more. When two polls of all sockets in a
/// row have found one packet of one connection and nothing else, the next polls read one packet from it alone: each
/// saves two system calls. Whatever else comes waits for the next poll of all sockets: every eighth one, and the one
/// after a poll of that connection that found nothing.
struct SoleActivePeer: Sendable {
    /// What the last poll of all sockets has found alone.
    private var connection: SocketConnection?
    /// How often it is polled alone before all are polled again; zero unless the last two such polls have found it.
    private var pollsLeft = 0

    init() {}

    /// The connection to poll alone; nil to poll all sockets.
    mutating func next() -> SocketConnection? {
        guard pollsLeft > 0 else { return nil }
        pollsLeft -= 1
        return connection
    }

    /// A poll of the connection alone has found nothing.
    mutating func didFindNothing() { self = SoleActivePeer() }

    /// A poll of all sockets has found one packet of this connection and nothing else; nil: something else.
    mutating func didPoll(found: SocketConnection?) {
        guard let found else { return didFindNothing() }
        if found === connection {
            pollsLeft = Tuning.solePollLimit
        } else {
            (connection, pollsLeft) = (found, 0)
        }
    }

    /// A connection was removed from the set.
    mutating func forget(_ other: SocketConnection) {
        if connection === other { didFindNothing() }
    }
}
