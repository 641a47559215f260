// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Which memory a loop polls by itself, and when. It begins to poll when it waits and has found nothing. When the wait
// is over it stops, or continues where no other thread watches: then no peer need notify it of what arrives while it
// handles something, because it polls again before it waits. So two loops that answer each other need no system call as
// long as neither sleeps. It always stops when the run ends, when another run begins inside it, and before a sleep that
// no wake channel ends. A thread that wakes another process and awaits its reply begins before it wakes it.

import PortSystem

extension ThreadRunLoop {
    /// Begins to poll the memory of the sources that were reported last, besides that which the loop polls already.
    ///
    /// - Returns: all entries; the caller passes them to `endWait`.
    func beginBusyPolling(in mode: Int) -> SmallList<BusyPollEntry> {
        let old = threadState.busyPolls
        if threadState.isBusyPolling, !threadState.busyPollsAreStale, old.allSatisfy({ $0.isBusyPolled }) { return old }
        threadState.busyPollsAreStale = false
        let sources = state.withLock { state in
            var sources = SmallList<RunLoopSource>()
            for registration in state.modes[mode].recentReports {
                if let source = state.registrations.list[registration].source { sources.append(source) }
            }
            return sources
        }
        for known in old where !known.isBusyPolled { known.pollable.endBusyPolling(known.period) }
        var entries = SmallList<BusyPollEntry>()
        for source in sources {
            source.routine.visitPollables { pollable in
                if let known = old.first(where: { $0.pollable === pollable && $0.source == source.id }),
                    known.isBusyPolled
                {
                    entries.append(known)
                } else if let period = pollable.beginBusyPolling() {
                    entries.append(BusyPollEntry(pollable, period, for: source.id))
                }
            }
        }
        for known in old where !entries.contains(where: { $0.pollable === known.pollable }) {
            known.pollable.endBusyPolling(known.period)
        }
        threadState.busyPolls = entries
        return entries
    }

    /// Begins to poll memory of a source before the loop waits, unless it polls already. Until ``endBusyPolling()`` the
    /// thread does not wait: replies to other threads may come over the same connection. Loop thread.
    package func beginBusyPolling(at pollable: any BusyPollable, for source: ItemID) {
        if threadState.isBusyPolling { return }
        guard let period = pollable.beginBusyPolling() else { return }
        threadState.busyPolls.append(BusyPollEntry(pollable, period, for: source))
    }

    /// A wait in which the loop polled is over. It continues to poll where it may.
    func endWait(at entries: SmallList<BusyPollEntry>) {
        if entries.allSatisfy({ $0.isBusyPolled }) { return }
        var remaining = SmallList<BusyPollEntry>()
        for entry in entries {
            if entry.isBusyPolled || entry.pollable.continueBusyPolling(entry.period, for: entry.source, on: self) {
                remaining.append(entry)
            } else {
                entry.pollable.endBusyPolling(entry.period)
                threadState.busyPollsAreStale = true
            }
        }
        threadState.busyPolls = remaining
    }

    /// Receives what has arrived where the loop still polls while it handles events.
    ///
    /// - Returns: whether there was something.
    func receivePolledArrivals() -> Bool {
        if !threadState.isBusyPolling { return false }
        var (hasArrival, isOver) = (false, false)
        for entry in threadState.busyPolls {
            if entry.isBusyPolled, entry.pollable.hasArrived, entry.pollable.receiveArrivals() { hasArrival = true }
            if !entry.isBusyPolled { isOver = true }
        }
        if isOver { endWait(at: threadState.busyPolls) }
        return hasArrival
    }

    /// Stops polling everywhere. What has arrived is received.
    package func endBusyPolling() {
        if !threadState.isBusyPolling { return }
        let entries = threadState.busyPolls
        threadState.busyPolls = SmallList()
        for entry in entries { entry.pollable.endBusyPolling(entry.period) }
    }
}
