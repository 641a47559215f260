// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

extension Contestant {
    /// Round trips between two tasks, over a stream each way.
    static func streamPair() -> Contestant {
        let (there, thereEnd) = AsyncStream.makeStream(of: Packet?.self)
        let (back, backEnd) = AsyncStream.makeStream(of: Packet?.self)
        let rally = Rally()
        Task.detached { for await packet in there { backEnd.yield(packet) } }
        Task.detached {
            // Nil marks the beginning of a run.
            for await packet in back {
                if packet == nil {
                    rally.begin { thereEnd.yield(Packet()) }
                } else {
                    rally.answered { thereEnd.yield(packet) }
                }
            }
        }
        return Contestant(
            name: "AsyncStream",
            run: { count, laps in try rally.run(count, laps) { backEnd.yield(nil) } },
            end: {
                thereEnd.finish()
                backEnd.finish()
            })
    }

    /// 64 bytes at a time to a task.
    static func streamOneWay() -> Contestant {
        let (stream, end) = AsyncStream.makeStream(of: Packet.self)
        let counter = ArrivalCounter()
        Task.detached { for await _ in stream { counter.arrived() } }
        return Contestant(
            name: "AsyncStream", timesLaps: false,
            run: { count, _ in
                try counter.run(count) { count in for _ in 0..<count { end.yield(Packet()) } }
            },
            end: { end.finish() })
    }
}
