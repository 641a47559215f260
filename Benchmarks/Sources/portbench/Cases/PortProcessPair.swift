// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

extension Contestant {
    /// Round trips between run loops of two processes: `size` bytes there; as many back, at most 64 unless it
    /// `echoes`.
    static func portProcessPair(
        _ strategy: WaitStrategy, size: Int = Packet.size, echoes: Bool = false, on placement: Placement = .anywhere
    ) throws -> Contestant {
        let rally = Rally()
        let request = size > Packet.size && !echoes ? PortChild.Request.short : .echo
        let message = MachMessage(id: request.rawValue, bytes: Array(repeating: 7, count: size))
        let child = try PortProcess(strategy, on: placement)
        let right = child.right
        child.worker.port.setHandler { _, _ in rally.answered { try right.send(message, within: .seconds(10)) } }
        return Contestant(
            name: "ports",
            run: { count, laps in
                try rally.run(count, laps) {
                    child.thread.loop.perform { rally.begin { try right.send(message, within: .seconds(10)) } }
                }
            },
            end: child.end)
    }

    /// Messages of 64 bytes from this thread to the run loop of another process, each made anew.
    static func portProcessStream() throws -> Contestant {
        let counter = ArrivalCounter()
        let child = try PortProcess(.adaptive)
        let right = child.right
        child.worker.port.setHandler { _, _ in counter.allArrived() }
        return Contestant(
            name: "ports", timesLaps: false,
            run: { count, _ in
                try counter.run(count) { count in
                    try right.send(UInt64(count), id: PortChild.Request.announce.rawValue, within: .seconds(10))
                    for _ in 0..<count {
                        try right.send(
                            PortSink.makeMessage(PortChild.Request.counted.rawValue), within: .seconds(10))
                    }
                }
            },
            end: child.end)
    }

    /// Requests of this thread to a named port of another process.
    static func namedPort(_ strategy: WaitStrategy, on placement: Placement = .anywhere) throws -> Contestant {
        let name = "org.example.portbench.\(PeerIdentity.current.processID)"
        let child = try PortProcess(strategy, name: name, on: placement)
        let remote = try RemoteMessagePort(name: name)
        let message = MachMessage(id: 1, bytes: Array(repeating: 7, count: Packet.size))
        return Contestant(
            name: "ports",
            run: { count, laps in
                try placement.near.run(waiting: strategy) {
                    try timed(count, laps) { try remote.request(message) }
                }
            },
            end: {
                remote.invalidate()
                child.end()
            })
    }
}
