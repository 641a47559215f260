// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPeers

extension Contestant {
    /// The other libraries that take part in a case; none unless the program was built with them.
    static func peers(
        _ which: peer_case, size: Int = Packet.size, on placement: Placement = .anywhere
    ) -> [() throws -> Contestant] {
        let places = peer_places(near: placement.near.number, far: placement.far.number)
        var makers: [() throws -> Contestant] = []
        while let peer = peer_at(which, makers.count)?.pointee {
            makers.append {
                let name = String(cString: peer.name)
                if let obstacle = peer.obstacle?() {
                    throw NotAvailable("\(name): not available: \(String(cString: obstacle))")
                }
                guard let pair = peer.start(size, places) else { throw BenchmarkFailure("\(name) did not start") }
                return Contestant(
                    name: name, timesLaps: peer.times_laps != 0,
                    run: { count, laps in
                        let time = try placement.near.run {
                            peer.run(pair, Int64(count), laps?.filled(count))
                        }
                        if time < 0 { throw BenchmarkFailure("\(name) failed") }
                        return time
                    },
                    end: { peer.end(pair) })
            }
        }
        return makers
    }
}
