// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

extension PortSockets {
    /// Most connections that one call accepts; the others are reported again.
    private static let acceptBudget = 64

    /// Accepts the connections that wait.
    func acceptAll(for sink: any MessageSink) {
        for _ in 0..<Self.acceptBudget {
            guard acceptOne(for: sink) else { return }
        }
    }

    /// - Returns: whether there may be more.
    private func acceptOne(for sink: any MessageSink) -> Bool {
        var client: SocketConnection?
        let mayHaveMore = acceptOne(for: sink, &client)
        // Most clients send at once: their message comes with this turn.
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
            // Who is not admitted may not even begin to talk: asked before the first message is read.
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
            // Without a descriptor the connection would wait, and be reported, for ever: accept it with the spare one.
            guard error.isDescriptorLimit else {
                // The client waits, and would be reported without end.
                _ = try? IOThread.loop()
                pauseListener()
                return false
            }
            let isRefused = SpareDescriptor.shared.lend { refuseOne() }
            guard SpareDescriptor.shared.isMissing else { return isRefused }
            // The next that is accepted would keep the number that becomes free when the refused one is closed.
            pauseListener()
            return false
        }
    }

    /// Connections that can be neither accepted nor refused, or not be watched, are not looked at for this time.
    static let timeUntilRetry = Duration.milliseconds(10)

    /// Does not look at the listener for a moment, if there is a thread to end that. It is not started for this: a loop
    /// without a descriptor left cannot begin to sleep.
    private func pauseListener() {
        guard let loop = IOThread.startedLoop else { return }
        let isListenerPaused = state.withLock { state in
            guard !state.isListenerPaused, let listener = state.listener?.descriptor.raw else { return false }
            state.isListenerPaused = (try? epoll.modify(listener, [], key: Self.listenerKey)) != nil
            return state.isListenerPaused
        }
        guard isListenerPaused else { return }
        loop.add(RunLoopTimer(after: Self.timeUntilRetry) { [weak self] _ in self?.resumeListener() })
    }

    private func resumeListener() {
        SpareDescriptor.shared.restore()
        state.withLock { state in
            state.isListenerPaused = false
            guard let listener = state.listener?.descriptor.raw else { return }
            try? epoll.modify(listener, .readable, key: Self.listenerKey)
        }
    }

    /// - Returns: why the connection is not kept.
    private func refusal(adding connection: SocketConnection) -> PortError.Code? {
        do throws(PortError) {
            try add(connection, isLimited: true)
            return nil
        } catch {
            // What else the kernel refuses is, for the peer, that this process has nothing left for it.
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

    /// Accepts a connection only to tell it that there is no descriptor for it.
    private func refuseOne() -> Bool {
        guard let accepted = try? accept() else { return false }
        // Closed here when nothing lies in it, so that the spare descriptor is there again when this returns. What a
        // peer has sent may keep whoever closes it waiting: then the spare one is made again at one of the next looks.
        SocketConnection.sendRefusal(.descriptorLimit, to: SharedDescriptor(connection: accepted))
        return true
    }
}

/// A descriptor kept for the moment in which there is no other: lent, it lets a connection be refused cleanly. While it
/// is lent another thread may take its number; then it is made again as soon as there is a descriptor for it.
package final class SpareDescriptor: Sendable {
    package static let shared = SpareDescriptor()

    private let spare = Mutex<EpollSet?>(nil)
    /// There was one, and nobody has been able to make it again.
    private let isLost = Atomic<Bool>(false)

    /// Whether there is none now, though there should be.
    package var isMissing: Bool { isLost.load(ordering: .acquiring) }

    /// Its number, which changes whenever it was lent; nil when there is none. For counts of descriptors.
    package var rawValue: CInt? { spare.withLock { $0?.raw } }

    /// Makes sure that there is one.
    package func reserve() {
        spare.withLock { make(&$0) }
    }

    /// Makes it again, if it was lost and there is a descriptor for it.
    func restore() {
        if isMissing { reserve() }
    }

    /// Calls `body` while one more descriptor can be opened.
    ///
    /// - Returns: the body's answer; false when there is no spare one.
    package func lend(_ body: () -> Bool) -> Bool {
        spare.withLock { spare in
            let wasThere = spare != nil
            spare = nil
            defer { make(&spare) }
            return wasThere && body()
        }
    }

    private func make(_ spare: inout EpollSet?) {
        if spare == nil { spare = try? EpollSet() }
        isLost.store(spare == nil, ordering: .releasing)
    }
}

/// Which of a port's connections is read from without asking the kernel for the others: decides, does nothing else.
///
/// Mostly one peer talks at a time, and waits for an answer before it says more. When two looks in a row at all
/// sockets have found one packet of one connection and nothing else, the next looks read one packet from it alone: two
/// system calls less for each. Whatever else comes waits for the next look at all: each eighth is one, and so is one
/// that follows a look at that connection which found nothing.
struct SoleActivePeer: Sendable {
    /// So many looks at it alone follow each other at most.
    static let solePollLimit = 7

    private var connection: SocketConnection?
    /// Whether the last two looks at all have found it alone.
    private var isProven = false
    private var solePollsLeft = 0

    /// The connection that the next look is at, alone; nil when it is to be at all.
    mutating func next() -> SocketConnection? {
        if !isProven || solePollsLeft == 0 { return nil }
        solePollsLeft -= 1
        return connection
    }

    /// A look at it alone has found nothing.
    mutating func didFindNothing() {
        self = SoleActivePeer()
    }

    /// A look at all has found one packet of this connection and nothing else; nil: something else.
    mutating func didPoll(found: SocketConnection?) {
        isProven = found != nil && found === connection
        connection = found
        solePollsLeft = Self.solePollLimit
    }

    /// A connection is listened to no more.
    mutating func forget(_ other: SocketConnection) {
        if connection === other { didFindNothing() }
    }
}
