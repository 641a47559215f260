// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls

extension Contestant {
    /// Two threads that wake each other with an eventfd each, waiting in epoll.
    static func eventfdPair(on placement: Placement = .anywhere) throws -> Contestant {
        guard let pair = bare_eventfd_start(placement.far.number) else { throw BenchmarkFailure("no eventfd") }
        return Contestant(
            name: "bare eventfd + epoll",
            run: { count, laps in
                try placement.near.run { bare_eventfd_run(pair, Int64(count), laps?.filled(count)) }
            },
            end: { bare_eventfd_end(pair) })
    }

    /// Copies in memory: the least cost of a transfer of bytes.
    static func copy(_ size: Int) -> Contestant {
        Contestant(name: "memcpy", run: { bare_copy_run(size, Int64($0), $1?.filled($0)) })
    }
}
