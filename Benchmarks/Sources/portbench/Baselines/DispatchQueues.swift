// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Dispatch

extension Contestant {
    /// Round trips between two serial queues.
    static func dispatchPair() -> Contestant {
        let (near, far) = (DispatchQueue(label: "portbench.near"), DispatchQueue(label: "portbench.far"))
        let rally = Rally()
        @Sendable func send() {
            far.async { near.async { rally.answered(send) } }
        }
        return Contestant(
            name: "Dispatch async",
            run: { count, laps in
                try rally.run(count, laps) { near.async { rally.begin(send) } }
            })
    }

    /// Blocks that carry 64 bytes to a serial queue.
    static func dispatchOneWay() -> Contestant {
        let (queue, counter) = (DispatchQueue(label: "portbench.sink"), ArrivalCounter())
        return Contestant(
            name: "Dispatch async", timesLaps: false,
            run: { count, _ in
                try counter.run(count) { count in
                    for _ in 0..<count {
                        let packet = Packet()
                        queue.async {
                            withExtendedLifetime(packet) {}
                            counter.arrived()
                        }
                    }
                }
            })
    }
}
