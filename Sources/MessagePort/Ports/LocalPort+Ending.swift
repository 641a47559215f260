// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

extension LocalPort {
    @discardableResult
    package func watchDeath(_ watcher: DeathWatcher) throws(PortError) -> Withdrawal {
        try checkProcess()
        let notice = LoopNotification<Void>(on: watcher.loop, in: watcher.mode) { _ in watcher.handler() }
        let isDead = state.withLock { state in
            if state.mailbox.isDead { return true }
            // Those whose loops have ended are forgotten before the list grows.
            let isFull = state.extras.deathNotices.count == state.extras.deathNotices.capacity
            if isFull { state.extras.deathNotices.removeAll { $0.isOver } }
            state.extras.deathNotices.append(notice)
            return false
        }
        if isDead { notice.tell() }
        return { [weak notice] in notice?.cancel() }
    }

    package func watchRoom(_ notice: LoopNotification<SendPossibility>) throws(PortError) {
        try checkProcess()
        if let possibility = state.withLock({ $0.mailbox.awaitRoom(notice) }) { notice.tell(possibility) }
    }

    /// Has something end with the port, before `die` returns. Not for callouts to a user's code.
    ///
    /// - Returns: a number for `cancelEnding`; nil when the port is dead and `ending` was called.
    package func whenDead(_ ending: @escaping @Sendable () -> Void) -> Int? {
        let number = state.withLock { state -> Int? in
            if state.mailbox.isDead { return nil }
            state.extras.lastEnding += 1
            state.extras.endings[state.extras.lastEnding] = ending
            return state.extras.lastEnding
        }
        if number == nil { ending() }
        return number
    }

    /// What `whenDead` was given does not end with the port any more.
    package func cancelEnding(_ number: Int) {
        let ending = state.withLock { $0.extras.endings.removeValue(forKey: number) }
        withExtendedLifetime(ending) {}
    }

    /// What is left of a port that has ended.
    private struct Remains {
        var sources: SourceList
        var extras: Rare<Extras>
        var bounced: [MachMessage]
        var waitingSenders: [BlockedSender]
        var roomNotices: [LoopNotification<SendPossibility>]
    }

    /// Ends the port: its names are freed, sockets close, senders and receivers wake, queued messages bounce, watchers are
    /// told.
    ///
    /// - Returns: false when it had ended before.
    func die() -> Bool {
        if isInherited { return false }
        let remains = state.withLock { state -> Remains? in
            guard let (bounced, waitingSenders) = state.mailbox.die() else { return nil }
            let roomNotices = state.mailbox.takeRoomNotices()
            let remains = Remains(
                sources: state.sources, extras: state.takeExtras(), bounced: bounced, waitingSenders: waitingSenders,
                roomNotices: roomNotices)
            state.sources = SourceList()
            // The address stays: rights that were on their way are equal then to those that are here.
            if let bell = remains.extras.value.bell { state.extras.bell = bell }
            if let address = remains.extras.value.address {
                (state.extras.address, state.extras.oldAddresses) = (address, remains.extras.value.oldAddresses)
            }
            return remains
        }
        guard let remains else { return false }
        let extras = remains.extras
        for address in extras.value.addresses { RightsTable.shared.didEnd(self, at: address) }
        for source in remains.sources.all {
            source.ring()  // a thread blocked in receive(within:) wakes and finds the port dead
            source.invalidate()
        }
        // Its names are free before a client can notice the end: who hears of it may take them.
        for ending in extras.value.endings.values { ending() }
        extras.value.sockets?.close()
        extras.value.taskWatch?.source.invalidate()
        for task in extras.value.waitingTasks { task.wake() }
        for sender in remains.waitingSenders { sender.waiter.wake() }
        for message in remains.bounced { message.replyTarget?.fail(PortError(.peerDied)) }
        for notice in extras.value.deathNotices { notice.tell() }
        for notice in remains.roomNotices { notice.tell(.deadName) }
        for notice in extras.value.senderNotices { notice.cancel() }
        return true
    }
}
