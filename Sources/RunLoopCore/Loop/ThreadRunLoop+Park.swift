// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// A loop that polls memory of other processes parks there before it sleeps: its peers then wake it through a wake
// channel, which the loop's set watches beside its other descriptors. That is one system call on each side, and nothing
// is read.

import PortSystem

extension ThreadRunLoop {
    /// Sleeps until a descriptor is ready, the loop is woken, the deadline has passed, or something was received from
    /// memory of other processes; and notes what the kernel has reported.
    ///
    /// - Returns: whether the kernel was polled for descriptors: false when something had arrived before; nil, without
    ///   a sleep, when there is no such memory.
    func sleepParked(_ run: LoopRun, _ set: DescriptorSet, until deadline: MonotonicInstant) -> Bool? {
        let places = placesToPark(in: run.mode, set)
        if places.isEmpty { return nil }
        defer { endWait(at: places) }
        while true {
            let sleeps = park(at: places) && doorbell.willSleep()
            var hasReport = false
            if sleeps {
                counts.didLook(sleeping: true)
                hasReport = wait(set, run, until: deadline)
                doorbell.didSleep()
            }
            for looked in places { looked.place.unpark(looked.look) }
            var isWithinMessage = false
            for looked in places where looked.place.hasArrived {
                looked.place.wakeChannel?.didArrive()
                if !looked.place.takeIn() { isWithinMessage = true }
            }
            // Unless the rest of a message is still to come: an entry may have ended or lost its channel, and must be
            // released.
            guard isWithinMessage, sleeps, !hasReport, !doorbell.isRung, deadline > .now, areSeen(places, by: set)
            else { return sleeps }
        }
    }

    /// The entries that the loop polls and whose arrivals the set reports. The loop stops polling the others.
    private func placesToPark(in mode: Int, _ set: DescriptorSet) -> SmallList<BusyPollEntry> {
        let places = lookOut(in: mode)
        if areSeen(places, by: set) { return places }
        var seen: SmallList<BusyPollEntry> = .none
        for looked in places {
            if looked.place.wakeChannel?.join(set) == true {
                seen.append(looked)
            } else {
                looked.place.endLooking(looked.look)
            }
        }
        lookout.places = seen
        lookout.isStale = true
        return seen
    }

    /// Whether edges of all entries' channels end the waits of a set.
    private func areSeen(_ places: SmallList<BusyPollEntry>, by set: DescriptorSet) -> Bool {
        places.allSatisfy { $0.place.wakeChannel?.join(set) == true }
    }

    /// - Returns: whether the loop is parked at all entries; otherwise something has arrived, or an entry has ended and
    ///   must be released.
    private func park(at places: SmallList<BusyPollEntry>) -> Bool {
        for looked in places where looked.place.park(looked.look) != .parked { return false }
        return true
    }
}
