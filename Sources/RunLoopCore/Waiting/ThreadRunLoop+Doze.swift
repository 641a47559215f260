// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// A loop that watches descriptors, and looks at memory of other processes besides, sleeps on both at once where the kernel
// can: whoever writes there wakes a word, which takes one system call, and nobody has to read what told of it.

import PortSystem

extension ThreadRunLoop {
    /// Sleeps until a descriptor is ready, the loop is rung, the deadline has come, or something was taken in from memory
    /// of other processes; and notes what the kernel has reported.
    ///
    /// - Returns: whether the kernel was asked for descriptors: not when something had come before; nil, without a sleep, when
    ///   there is no such memory, or the kernel cannot wait for it.
    func doze(_ run: LoopRun, _ set: DescriptorSet, until deadline: MonotonicInstant) -> Bool? {
        guard set.mayDoze else { return nil }
        let places = lookOut(in: run.mode)
        if places.isEmpty { return nil }
        defer { endWait(at: places) }
        while true {
            let words = words(at: places)
            let sleeps = words != nil && doorbell.willSleep()
            var report: Bool? = false
            if sleeps, let words { report = sleep(set, words, until: deadline) }
            for looked in places { looked.place.endDoze(looked.look) }
            guard let hasReport = report else { return nil }
            if hasReport { wait(set, run, until: .distantPast) }
            var isWithinMessage = false
            for looked in places where looked.place.hasArrived {
                if !looked.place.takeIn() { isWithinMessage = true }
            }
            // Unless more of a message is to come: a place may have ended, which is to be let go.
            guard isWithinMessage, sleeps, !hasReport, !doorbell.isRung, deadline > .now else { return sleeps }
        }
    }

    /// - Returns: the words that will be woken; nil when something has come, or a place has ended, which is to be let go.
    private func words(at places: ShortList<LookedAt>) -> ShortList<SharedWord>? {
        var words: ShortList<SharedWord> = .none
        for looked in places {
            switch looked.place.doze(looked.look) {
            case .word(let word): words.append(word)
            case .arrived, .ended: return nil
            }
        }
        return words
    }

    private func sleep(_ set: DescriptorSet, _ words: ShortList<SharedWord>, until deadline: MonotonicInstant) -> Bool?
    {
        counts.didLook(sleeping: true)
        defer { doorbell.didSleep() }
        return set.doze(on: words, until: deadline)
    }
}
