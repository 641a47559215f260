// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// A loop that polls memory of other processes parks there before it sleeps: its peers then wake it by a wake channel, which the
// loop's set watches beside its other descriptors. That is one system call for each side, and nothing is read.

import PortSystem

extension ThreadRunLoop {
    /// Sleeps until a descriptor is ready, the loop is rung, the deadline has come, or something was taken in from memory
    /// of other processes; and notes what the kernel has reported.
    ///
    /// - Returns: whether the kernel was asked for descriptors: not when something had come before; nil, without a sleep, when
    ///   there is no such memory.
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
            // Unless more of a message is to come: a place may have ended, or its channel been cut off, and is to be let go.
            guard isWithinMessage, sleeps, !hasReport, !doorbell.isRung, deadline > .now, areSeen(places, by: set)
            else { return sleeps }
        }
    }

    /// The places at which the loop polls, and of which the set sees when something arrives. At the others it stops to poll.
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

    /// Whether edges of all places' channels end the waits of a set.
    private func areSeen(_ places: SmallList<BusyPollEntry>, by set: DescriptorSet) -> Bool {
        places.allSatisfy { $0.place.wakeChannel?.join(set) == true }
    }

    /// - Returns: whether the loop is parked at all places; otherwise something has arrived, or a place has ended, which is to be
    ///   let go.
    private func park(at places: SmallList<BusyPollEntry>) -> Bool {
        for looked in places where looked.place.park(looked.look) != .parked { return false }
        return true
    }
}
