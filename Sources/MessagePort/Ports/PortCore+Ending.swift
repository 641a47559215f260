// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

extension PortCore {
    package func watchDeath(_ watcher: DeathWatcher) throws(PortError) {
        try checkProcess()
        let isDead = state.withLock { state in
            if !state.mailbox.isDead { state.extras.deathWatchers.append(watcher) }
            return state.mailbox.isDead
        }
        if isDead { watcher.tell() }
    }

    package func watchRoom(_ notice: LoopNotice<SendPossibility>) throws(PortError) {
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
        var state: State
        var bounced: [MachMessage]
        var waitingSenders: [WaitingSender]
        var roomNotices: [LoopNotice<SendPossibility>]
        var senderNotices: [LoopNotice<Void>]
    }

    /// Ends the port: queued messages bounce, senders and receivers wake, sockets close, watchers are told.
    ///
    /// - Returns: false when it had ended before.
    func die() -> Bool {
        if isInherited { return false }
        let remains = state.withLock { state -> Remains? in
            guard let (bounced, waitingSenders) = state.mailbox.die() else { return nil }
            let remains = Remains(
                state: state, bounced: bounced, waitingSenders: waitingSenders,
                roomNotices: state.mailbox.takeRoomNotices(), senderNotices: state.senders.takeAll())
            state.sources = []
            state.$extras = nil
            if let bell = remains.state.extras.bell { state.extras.bell = bell }
            return remains
        }
        guard let remains else { return false }
        let old = remains.state
        if let address = old.extras.address { RightsTable.shared.forget(address) }
        for source in old.sources {
            source.ring()  // a thread blocked in receive(within:) wakes and finds the port dead
            source.invalidate()
        }
        old.extras.sockets?.close()
        for ending in old.extras.endings.values { ending() }
        old.extras.taskWatch?.source.invalidate()
        for task in old.extras.waitingTasks { task.wake() }
        for sender in remains.waitingSenders { sender.event.set() }
        for message in remains.bounced { message.replyTarget?.fail(PortError(.peerDied)) }
        for watcher in old.extras.deathWatchers { watcher.tell() }
        for notice in remains.roomNotices { notice.tell(.deadName) }
        for notice in remains.senderNotices { notice.cancel() }
        return true
    }
}
