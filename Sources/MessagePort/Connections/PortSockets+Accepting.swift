// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

extension PortSockets {
    /// Accepts clients that wait, as many as may be for one message, and begins to read from them.
    func acceptSome(for sink: any MessageSink, _ budget: inout ReceiveBudget) {
        while budget.mayAccept() {
            var client: SocketConnection?
            let mayHaveMore = acceptOne(for: sink, &client)
            if let client {
                // Most clients send at once: their message is received in this pass.
                _ = client.receive(into: sink)
                background.object?.awaitQuery(of: client)
            }
            if !mayHaveMore { return }
        }
    }

    /// Accepts a client, or refuses it. On the I/O thread none is accepted of which the program is to be asked.
    ///
    /// - Returns: whether there may be more.
    func acceptOne(
        for sink: any MessageSink, inBackground: Bool = false, _ client: inout SocketConnection?
    ) -> Bool {
        sink.willAccept()
        var foundNone = false
        defer { sink.didAccept(foundNone: foundNone) }
        do throws(SystemError) {
            let hadOne = try accepting.withLock { (_) throws(SystemError) -> Bool? in
                let policy = sink.peerRules.policy
                // One that has ended has no policy any more; its listener is closed at this moment.
                if sink.isDead { return false }
                return policy.callsProgram ? nil : try tryAcceptOne(for: sink, policy, &client, &foundNone)
            }
            if let hadOne { return hadOne }
            // No lock is held while the program is asked.
            let policy = sink.peerRules.policy
            return inBackground || sink.isDead ? false : try tryAcceptOne(for: sink, policy, &client, &foundNone)
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

    /// As above, with a policy. Sets `foundNone` when no client waited.
    ///
    /// - Returns: false when there was none.
    private func tryAcceptOne(
        for sink: any MessageSink, _ policy: PeerPolicy, _ client: inout SocketConnection?, _ foundNone: inout Bool
    ) throws(SystemError) -> Bool {
        guard let (socket, isOfFormer) = try accept() else {
            // While it is frozen, clients may wait.
            foundNone = state.withLock { $0.phase != .frozen }
            return false
        }
        guard DescriptorShares().admits(socket.rawValue) else {
            SocketConnection.sendRefusal(.descriptorLimit, to: socket)
            return true
        }
        guard let connection = try? SocketConnection(socket, port: sink) else { return true }
        // A peer that is not admitted must not begin to talk: checked before the first message is read.
        guard policy.admits(ConnectingPeer(connection.peer, on: socket)) else {
            SocketConnection.sendRefusal(.peerRefused, to: socket)
            return true
        }
        do throws(PortError) {
            if isOfFormer { connection.mustAnnounceMove.store(true, ordering: .relaxed) }
            try add(connection, isAccepted: true)
            client = connection
        } catch {
            // To the peer, any other refusal of the kernel means that this process has no resources for it. One of a
            // port that has ended finds its connection closed.
            let reason = error.code == .tooManyConnections ? error.code : .descriptorLimit
            if error.code != .invalidPort { SocketConnection.sendRefusal(reason, to: socket) }
        }
        return true
    }

    /// Stops watching the listener for a moment, if there is a thread to resume it. None is started for this: a loop
    /// cannot begin to sleep when no descriptor is left.
    private func pauseListener() {
        // No thread could be started: this one pauses, rather than poll the listener endlessly.
        guard let loop = IOThread.startedLoop else { return sysSleep(Tuning.timeUntilRetry) }
        let isPaused = state.withLock { state in
            guard state.phase == .open, let listener = state.listener?.descriptor.raw,
                (try? epoll.modify(listener, [], key: Self.listenerKey)) != nil
            else { return false }
            state.phase = .listenerPaused
            return true
        }
        guard isPaused else { return }
        loop.add(RunLoopTimer(after: Tuning.timeUntilRetry) { [weak self] _ in self?.resumeListener() })
    }

    private func resumeListener() {
        ReservedDescriptor.shared.restore()
        state.withLock { state in
            if state.phase == .frozen { return }
            if state.phase == .listenerPaused { state.phase = .open }
            guard let listener = state.listener?.descriptor.raw else { return }
            try? epoll.modify(listener, .readable, key: Self.listenerKey)
        }
        background.object?.accept()  // this is the I/O thread
    }

    /// - Returns: a client, and whether it may have connected when the port was another process's.
    private func accept() throws(SystemError) -> (SharedDescriptor, isOfFormer: Bool)? {
        // Under the lock, so that the listener is not closed, and its number reused, before the call.
        let result = state.withLock { state -> Result<(CInt, Bool)?, SystemError> in
            guard state.phase != .frozen, let number = state.listener?.descriptor.raw else { return .success(nil) }
            do throws(SystemError) {
                guard let accepted = try sysAccept(number) else {
                    state.hasFormerBacklog = false
                    return .success(nil)
                }
                return .success((accepted.release(), state.hasFormerBacklog))
            } catch {
                return .failure(error)
            }
        }
        guard let (number, isOfFormer) = try result.get() else { return nil }
        return (SharedDescriptor(connection: FileDescriptor(owning: number)), isOfFormer)
    }

    /// Accepts a connection only to refuse it because no descriptor is left.
    private func refuseOne() -> Bool {
        guard let (accepted, _) = (try? accept()) ?? nil else { return false }
        // Closed here when it holds no data, so that the spare descriptor exists again when this returns. Data from the
        // peer may delay the thread that closes it: then the spare one is made again at one of the next polls.
        SocketConnection.sendRefusal(.descriptorLimit, to: accepted)
        return true
    }
}
