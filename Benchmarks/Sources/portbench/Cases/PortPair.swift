// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// Two threads with a run loop each, and a port on each of them.
final class PortPair {
    let near: ResidentThread
    let far: ResidentThread
    private let nearPort: MachPort
    private let farPort: MachPort
    private let rally = Rally()
    private let message: MachMessage

    /// Makes the far port answer, and the near port count.
    init(_ strategy: WaitStrategy, on placement: Placement = .anywhere) throws {
        near = try ResidentThread(name: "near")
        far = try ResidentThread(name: "far")
        try placement.near.bind(near)
        try placement.far.bind(far)
        near.loop.waitStrategy = strategy
        far.loop.waitStrategy = strategy
        (nearPort, farPort) = (MachPort(), MachPort())
        let (there, back) = (farPort.makeSendRight(), nearPort.makeSendRight())
        nearPort.setHandler { [rally] _, message in rally.answered { try there.send(message, within: .seconds(10)) } }
        farPort.setHandler { _, message in try? back.send(message, within: .seconds(10)) }
        try nearPort.schedule(on: near.loop)
        try farPort.schedule(on: far.loop)
        message = MachMessage(id: 1, bytes: Array(repeating: 7, count: Packet.size))
    }

    func run(_ count: Int, _ laps: Laps?) throws -> Int64 {
        try rally.run(count, laps) {
            let (there, message, rally) = (farPort.makeSendRight(), message, rally)
            near.loop.perform { rally.begin { try there.send(message, within: .seconds(10)) } }
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
