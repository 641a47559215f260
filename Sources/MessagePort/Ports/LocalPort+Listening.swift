// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore
import Synchronization

extension LocalPort {
    /// The source that is all that listens to the port, if there is one.
    var onlySource: RunLoopSource? {
        if readsAhead || receivesElsewhere.load(ordering: .sequentiallyConsistent) { return nil }
        return state.withLock { state in
            let isAlone = !state.mailbox.isDead && state.extras.bell == nil && state.extras.taskWatch == nil
            return isAlone ? state.sources.only : nil
        }
    }

    package var isReceivedElsewhere: Bool { receivesElsewhere.load(ordering: .relaxed) }

    /// Somebody else listens to the port from now on.
    func willBeHeardElsewhere() {
        if isInherited { return }
        sockets?.endKeeping()
    }

    /// Somebody receives other than by the port's sources from now on.
    func willReceiveElsewhere() {
        if receivesElsewhere.load(ordering: .relaxed) { return }
        receivesElsewhere.store(true, ordering: .sequentiallyConsistent)
        willBeHeardElsewhere()
    }

    /// Calls `body` with each place where a loop that spins looks for messages of other processes.
    func visitArrivalPlaces(_ body: (any BusyPollable) -> Void) {
        if isInherited { return }
        for ring in sockets?.state.withLock({ $0.busyRings }) ?? [] { body(ring) }
    }
}
