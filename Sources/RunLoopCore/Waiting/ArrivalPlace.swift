// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// What a loop that spins looks at besides its own bell: memory that another process writes. A place is only looked at
// while a loop spins; before the loop sleeps, the kernel is again the one who tells. Which places there are, the
// sources say that the kernel has reported in the mode last, so the cost does not grow with sources that are idle.

import Synchronization

/// Memory in which something for a source may arrive without the kernel's knowing.
package protocol ArrivalPlace: AnyObject, Sendable {
    /// A loop begins to look: nobody need tell the kernel from now on.
    ///
    /// - Returns: false when there is nothing to look at, or another thread looks already.
    func beginLooking() -> Bool
    /// Whether something is there. Quick: an atomic load or two.
    var hasArrived: Bool { get }
    /// Takes in what is there, as the source would when it is performed. Rings whatever became ready. When nothing is left, that
    /// may end the looking.
    ///
    /// - Returns: whether that is worth a look at what is ready; otherwise more is to come.
    func takeIn() -> Bool
    /// The loop does not look any more: unless `takeIn` has ended that already, what is there now is taken in, and of what comes
    /// later the kernel is told.
    func endLooking()
}

/// The sources of a mode that the kernel has reported last, by their seats.
struct RecentReports: Sendable {
    static let limit = 4

    private(set) var seats: [SeatNumber] = []

    mutating func note(_ seat: SeatNumber) {
        if seats.last == seat { return }
        remove(seat)
        if seats.count == Self.limit { seats.removeFirst() }
        seats.append(seat)
    }

    /// Forgets a seat that is about to be free.
    mutating func remove(_ seat: SeatNumber) {
        seats.removeAll { $0 == seat }
    }
}

extension ThreadRunLoop {
    /// Begins to look at the places of the sources that were reported last.
    func beginLooking(in mode: Int) -> ShortList<any ArrivalPlace> {
        let sources = state.withLock { state in
            var sources: ShortList<RunLoopSource> = .none
            for seat in state.modes[mode].recentReports.seats {
                if let source = state.seats.list[seat].source { sources.append(source) }
            }
            return sources
        }
        var places: ShortList<any ArrivalPlace> = .none
        for source in sources {
            source.routine.visitArrivalPlaces { if $0.beginLooking() { places.append($0) } }
        }
        return places
    }
}
