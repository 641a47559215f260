// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// Two threads with a run loop each, and a port on each of them.
final class PortPair {
    /// What a side sends for a message.
    typealias Answer = @Sendable (MachMessage) throws -> MachMessage

    let near: ResidentThread
    let far: ResidentThread
    private let nearPort: MachPort
    private let farPort: MachPort
    private let rally = Rally()
    private let message: MachMessage
    private let there: Answer

    /// Makes the far port answer, and the near port count. Each side sends back what it has received, unless said
    /// otherwise.
    init(
        _ strategy: WaitStrategy, on placement: Placement = .anywhere, there: @escaping Answer = { $0 },
        back: @escaping Answer = { $0 }
    ) throws {
        near = try ResidentThread(name: "near")
        far = try ResidentThread(name: "far")
        try placement.near.bind(near)
        try placement.far.bind(far)
        near.loop.waitStrategy = strategy
        far.loop.waitStrategy = strategy
        (nearPort, farPort) = (MachPort(), MachPort())
        let (farRight, nearRight) = (farPort.makeSendRight(), nearPort.makeSendRight())
        nearPort.setHandler { [rally] _, message in
            rally.answered { try farRight.send(there(message), within: .seconds(10)) }
        }
        farPort.setHandler { _, message in
            do {
                try nearRight.send(back(message), within: .seconds(10))
            } catch {
                Program.complain("far: \(error)")
            }
        }
        try nearPort.schedule(on: near.loop)
        try farPort.schedule(on: far.loop)
        message = MachMessage(id: 1, bytes: Array(repeating: 7, count: Packet.size))
        self.there = there
    }

    func run(_ count: Int, _ laps: Laps?) throws -> Int64 {
        try rally.run(count, laps) {
            let (right, message, there, rally) = (farPort.makeSendRight(), message, there, rally)
            near.loop.perform { rally.begin { try right.send(there(message), within: .seconds(10)) } }
        }
    }

    func end() {
        nearPort.invalidate()
        farPort.invalidate()
        near.stop()
        far.stop()
        near.join()
        far.join()
    }
}

extension Contestant {
    /// Round trips of one message between two run loops.
    static func portPair(_ strategy: WaitStrategy, on placement: Placement = .anywhere) throws -> Contestant {
        let pair = try PortPair(strategy, on: placement)
        return Contestant(name: "ports", run: pair.run, end: pair.end)
    }
}
