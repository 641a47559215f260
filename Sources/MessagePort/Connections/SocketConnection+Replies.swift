// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

extension SocketConnection: ReplyConnection {
    /// Notes who waits for a reply to the message that is about to be sent.
    ///
    /// - Returns: the token that asks for it; zero when no reply is wanted.
    func expectReply(for target: ReplyTarget?) throws(PortError) -> UInt64 {
        guard let target, target.isOpen else { return 0 }
        target.willAsk()
        let token = state.withLock { state -> UInt64? in
            guard state.failure == nil else { return nil }
            state.lastToken += 1
            state.awaited[state.lastToken] = target
            state.unsent.insert(state.lastToken)
            return state.lastToken
        }
        guard let token else {
            target.didEndAsking()
            throw PortError(.deadName)
        }
        do throws(PortError) {
            try target.receiver.expectReply(over: self)
        } catch {
            forget(token: token)
            throw error
        }
        return token
    }

    /// The message that asks with the token was sent. When the connection has ended meanwhile, its requester is told.
    func didSend(token: UInt64) {
        let (target, failure) = state.withLock { state -> (ReplyTarget?, PortError?) in
            guard state.unsent.remove(token) != nil else { return (nil, nil) }
            guard let failure = state.failure else { return (state.awaited[token], nil) }
            return (state.awaited.removeValue(forKey: token), failure)
        }
        if let failure { return target?.failAsking(failure.delivered(.unknown)) ?? () }
        target?.receiver.passAbandonment(to: self, token: token)
    }

    /// Whether a reply is to come over the connection.
    var awaitsReply: Bool { state.withLock { !$0.awaited.isEmpty } }

    /// The peer says that it no longer waits for the reply to the request that asked with the token.
    func requesterGaveUp(_ token: UInt64) {
        let watches = state.withLock { state -> [@Sendable () -> Void] in
            guard state.owed.contains(token) else { return [] }
            state.abandoned.insert(token)
            return state.abandonWatches.removeValue(forKey: token) ?? []
        }
        for tell in watches { tell() }
    }

    /// Whether the requester that asked with the token no longer waits, as far as this process knows.
    func isAbandoned(_ token: UInt64) -> Bool {
        let (isAbandoned, hasLostPort) = state.withLock { state in
            (state.failure != nil || state.abandoned.contains(token), state.hasLostPort)
        }
        if isAbandoned || !hasLostPort { return isAbandoned }
        // Nothing can be received any more, the peer's end neither; the kernel knows of it.
        let seen = try? sysPoll(descriptor.rawValue, .peerClosed, until: .distantPast)
        return !(seen ?? []).isDisjoint(with: [.hangUp, .error])
    }

    /// Tells, once, when the requester that asked with the token no longer waits.
    func watchAbandonment(of token: UInt64, _ tell: @escaping @Sendable () -> Void) {
        let isAbandoned = state.withLock { state in
            if state.failure != nil || state.abandoned.contains(token) { return true }
            if state.owed.contains(token) { state.abandonWatches[token, default: []].append(tell) }
            return false
        }
        if isAbandoned { tell() }
    }

    /// A reply under the token has come, or is not wanted any more.
    func takeAwaited(_ token: UInt64) -> ReplyTarget? {
        let target = removeAwaited(token)
        target?.didEndAsking()
        return target
    }

    /// A reply under the token will not come.
    func failAwaited(_ token: UInt64, _ error: PortError) {
        removeAwaited(token)?.failAsking(error)
    }

    private func removeAwaited(_ token: UInt64) -> ReplyTarget? {
        let (target, isDone) = state.withLock { state in
            state.unsent.remove(token)
            let target = state.awaited.removeValue(forKey: token)
            return (target, state.isRetired && !state.isNeeded)
        }
        if isDone { close(PortError(.deadName)) }
        return target
    }

    /// A reply under the token is not awaited any more. The target is not told.
    func forget(token: UInt64) {
        _ = takeAwaited(token)
    }

    /// No reply is awaited any more by the receiver.
    func forget(_ receiver: any ReplyReceiver) {
        guard let token = receiver.token(over: self) else { return }
        // A requester that has given up may come here before whoever tells the peer so; then this does.
        if receiver.isAbandoned { giveUp(token: token) } else { forget(token: token) }
    }

    /// The run-loop source that receives replies, and notices the peer's end; nil when the connection is closed.
    package func replySource() throws(PortError) -> RunLoopSource? {
        if let source = state.withLock({ $0.source }) { return source }
        // Who waits for a reply, or for the peer's end, does so in a run that has reasons of its own to go on.
        let made = RunLoopSource(
            label: .portReplies, keepsModeAlive: false, routine: ReplyRoutine(connection: self))
        do throws(SystemError) {
            try made.watch(pollable: descriptor.rawValue)
        } catch {
            throw PortError(error)
        }
        let source = state.withLock { state in
            if state.failure == nil && state.source == nil { state.source = made }
            return state.source
        }
        endKeepingSoon()
        return source
    }

    /// Tells the watcher, on its loop, when the connection ends.
    func watchDeath(_ watcher: DeathWatcher) throws(PortError) {
        let source = try replySource()
        // Noted first: a request that ends meanwhile leaves the source in the loop.
        let hasEnded = state.withLock { state in
            let hasEnded = state.failure != nil || state.isDeadName
            if !hasEnded { state.deathWatchers.append(watcher) }
            return hasEnded
        }
        if hasEnded { return watcher.tell() }
        do throws(PortError) {
            if let source { try watcher.loop.addOrThrow(source, to: watcher.mode) }
        } catch {
            // One that was told meanwhile has what it wanted.
            let wasWatching = state.withLock { state in
                let count = state.deathWatchers.count
                state.deathWatchers.removeAll { $0.mark === watcher.mark }
                return state.deathWatchers.count < count
            }
            if wasWatching { throw error }
        }
        // A loop that had ended before does not cancel the source.
        if watcher.loop.hasEnded { forgetWatchers(on: watcher.loop) }
    }

    /// A watcher is not to be told any more. A connection that was kept for it alone ends.
    func forgetWatcher(_ mark: DeathWatcher.Mark) {
        forgetWatchers { $0.mark === mark }
    }

    /// Whether somebody is to be told of the connection's end on the loop, perhaps in the mode.
    func hasWatcher(on loop: ThreadRunLoop, in mode: RunLoopMode) -> Bool {
        state.withLock { state in
            state.deathWatchers.contains { $0.loop == loop && ($0.mode == mode || $0.mode == .common) }
        }
    }

    /// A loop's thread has ended: nobody is to be told on it any more.
    fileprivate func forgetWatchers(on loop: ThreadRunLoop) {
        forgetWatchers { $0.loop == loop }
    }

    private func forgetWatchers(where isForgotten: (DeathWatcher) -> Bool) {
        let (forgotten, isDone) = state.withLock { state in
            let all = state.deathWatchers
            state.deathWatchers = all.filter { !isForgotten($0) }
            return (all, state.isRetired && !state.isNeeded)
        }
        if isDone { close(PortError(.deadName)) }
        withExtendedLifetime(forgotten) {}  // what a user's handler holds is released without the lock
    }
}

/// Receives replies, and notices the end of the peer, for whoever waits on a loop.
private struct ReplyRoutine: SourceRoutine {
    weak let connection: SocketConnection?

    func didLeave(_ mode: RunLoopMode, of loop: ThreadRunLoop) {
        if loop.hasEnded { connection?.forgetWatchers(on: loop) }
    }

    func visitArrivalPlaces(_ body: (any BusyPollable) -> Void) {
        if let connection, connection.hasRings { body(connection) }
    }

    func isReady() -> Bool { connection?.hasReadableUntold ?? false }

    func perform() -> SourceOutcome {
        connection?.receive(into: connection?.port?.object)
        connection?.pauseSource()
        connection?.ringSource()
        return .nothing
    }
}

/// Replies over a connection to the message that asked with a token.
final class RemoteReplyReceiver: ReplyReceiver {
    private let connection: SocketConnection  // immutable
    private let token: UInt64  // immutable

    init(_ connection: SocketConnection, token: UInt64) {
        self.connection = connection
        self.token = token
        connection.willOweReply(to: token)
    }

    func deliver(_ message: MachMessage, until deadline: MonotonicInstant) throws(PortError) {
        try connection.checkProcess()
        // What `use` does after an error settles the request.
        if connection.isAbandoned(token) { throw PortError(.deadName) }
        if connection.port != nil { return try connection.reply(message, answering: token) }
        try connection.send(message, answering: token, until: .instant(deadline))
        connection.didSettleReply(to: token)
    }

    func handOn(_ message: MachMessage) throws(PortError) {
        try connection.checkProcess()
        if connection.isAbandoned(token) { throw PortError(.deadName) }
        try connection.reply(message, answering: token)
    }

    func fail(_ error: PortError) {
        if connection.isInherited { return }
        if connection.isAbandoned(token) { return connection.didSettleReply(to: token) }
        if let code = error.remoteCode {
            return connection.failReply(to: token, code: code, text: error.remoteText ?? "")
        }
        let isGone = connection.port.map { $0.object?.isDead ?? true } ?? false
        let code = error.code == .replyDropped && isGone ? .peerDied : error.code
        connection.dropReply(to: token, because: code == .replyDropped ? nil : code, delivery: error.delivery)
    }

    /// Reads what has come from the requester first: its loop may be the one that asks.
    var isAbandoned: Bool {
        if connection.isInherited || connection.isAbandoned(token) { return true }
        connection.receiveUnlessReceiving()
        return connection.isAbandoned(token)
    }

    func watchAbandonment(_ watcher: DeathWatcher) {
        if connection.isInherited { return }
        connection.watchAbandonment(of: token) { watcher.tell() }
    }

    func passAbandonment(to other: any ReplyConnection, token otherToken: UInt64) {
        connection.watchAbandonment(of: token) { [weak other] in other?.giveUp(token: otherToken) }
    }

    /// The request is handed on to another process: the port that got it also listens for the answer.
    func expectReply(over other: any ReplyConnection) throws(PortError) {
        try connection.checkProcess()
        guard let core = connection.port?.object else { throw PortError(.invalidPort) }
        try core.openSockets().add(over: other)
    }
}
