// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// A thread with a run loop whose port counts its messages.
final class PortSink {
    /// Room for a batch: with less, the sender sleeps whenever the receiver does not keep up.
    static let queueLimit = 1024

    let thread: ResidentThread
    private let port: MachPort
    private let right: SendRight
    private let counter = ArrivalCounter()

    init() throws {
        thread = try ResidentThread(name: "sink")
        port = MachPort(queueLimit: Self.queueLimit) { [counter] _, _ in counter.arrived() }
        right = port.makeSendRight()
        try port.schedule(on: thread.loop)
    }

    /// Sends messages of 64 bytes, each made anew.
    func run(_ count: Int, _ laps: Laps?) throws -> Int64 {
        try counter.run(count) { count in
            for _ in 0..<count { try right.send(Self.makeMessage(), within: .seconds(10)) }
        }
    }

    static func makeMessage(_ id: Int32 = 1) -> MachMessage {
        MachMessage(id: id, byteCapacity: Packet.size) { bytes in
            bytes.append(repeating: 7, count: Packet.size)
        }
    }

    func end() {
        port.invalidate()
        thread.stop()
        thread.join()
    }
}

/// A thread with a run loop whose port answers requests.
final class PortServer {
    private let thread: ResidentThread
    private let port: MachPort
    private let right: SendRight
    private let message = MachMessage(id: 1, bytes: Array(repeating: 7, count: Packet.size))
    private let placement: Placement

    init(on placement: Placement) throws {
        self.placement = placement
        thread = try ResidentThread(name: "server")
        try placement.far.bind(thread)
        thread.loop.waitStrategy = placement.busy
        port = MachPort { _, message in try? message.reply(MachMessage(id: 2, bytes: message.bytes)) }
        right = port.makeSendRight()
        try port.schedule(on: thread.loop)
    }

    func run(_ count: Int, _ laps: Laps?) throws -> Int64 {
        let (right, message) = (right, message)
        return try placement.near.run(waiting: placement.busy) {
            try timed(count, laps) { _ = try right.request(message) }
        }
    }

    func end() {
        port.invalidate()
        thread.stop()
        thread.join()
    }
}

extension Contestant {
    /// Messages of 64 bytes from this thread to a run loop.
    static func portSink() throws -> Contestant {
        let sink = try PortSink()
        return Contestant(name: "ports", timesLaps: false, run: sink.run, end: sink.end)
    }

    /// Requests of this thread to a run loop.
    static func portServer(on placement: Placement = .anywhere) throws -> Contestant {
        let server = try PortServer(on: placement)
        return Contestant(name: "ports", run: server.run, end: server.end)
    }
}
