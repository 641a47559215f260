// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Which memory a loop polls by itself, and when. It begins to poll when it waits and has found nothing. When the wait
// is over it stops, or continues where no other thread watches: then no peer need notify it of what arrives while it
// handles something, because it polls again before it waits. So two loops that answer each other need no system call as
// long as neither sleeps. It always stops when the run ends, when another run begins inside it, and before a sleep that
// no wake channel ends.

import PortSystem

extension ThreadRunLoop {
    /// Begins to poll the memory of the sources that were reported last, besides that which the loop polls already.
    ///
    /// - Returns: all entries; the caller passes them to `endWait`.
    func lookOut(in mode: Int) -> SmallList<BusyPollEntry> {
        let old = lookout.places
        if !lookout.isEmpty, !lookout.isStale, old.allSatisfy({ $0.isKept }) { return old }
        lookout.isStale = false
        let sources = state.withLock { state in
            var sources: SmallList<RunLoopSource> = .none
            for seat in state.modes[mode].recentReports.seats {
                if let source = state.seats.list[seat].source { sources.append(source) }
            }
            return sources
        }
        for known in old where !known.isKept { known.place.endLooking(known.look) }
        var places: SmallList<BusyPollEntry> = .none
        for source in sources {
            source.routine.visitArrivalPlaces { place in
                if let known = old.first(where: { $0.place === place && $0.source == source.id }), known.isKept {
                    places.append(known)
                } else if let look = place.beginLooking() {
                    places.append(BusyPollEntry(place, look, for: source.id))
                }
            }
        }
        for known in old where !places.contains(where: { $0.place === known.place }) {
            known.place.endLooking(known.look)
        }
        lookout.places = places
        return places
    }

    /// A wait in which the loop polled is over. It continues to poll where it may.
    func endWait(at places: SmallList<BusyPollEntry>) {
        if places.allSatisfy({ $0.isKept }) { return }
        var kept: SmallList<BusyPollEntry> = .none
        for looked in places {
            if looked.isKept || looked.place.keepLooking(looked.look, for: looked.source, on: self) {
                kept.append(looked)
            } else {
                looked.place.endLooking(looked.look)
                lookout.isStale = true
            }
        }
        lookout.places = kept
    }

    /// Receives what has arrived where the loop still polls while it handles events.
    ///
    /// - Returns: whether there was something.
    func takeInKept() -> Bool {
        if lookout.isEmpty { return false }
        var (hasCome, isOver) = (false, false)
        for looked in lookout.places {
            if looked.isKept, looked.place.hasArrived, looked.place.takeIn() { hasCome = true }
            if !looked.isKept { isOver = true }
        }
        if isOver { endWait(at: lookout.places) }
        return hasCome
    }

    /// Stops polling everywhere. What has arrived is received.
    func stopLooking() {
        if lookout.isEmpty { return }
        let places = lookout.places
        lookout.places = .none
        for looked in places { looked.place.endLooking(looked.look) }
    }
}
