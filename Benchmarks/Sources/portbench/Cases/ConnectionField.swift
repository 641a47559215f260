// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import NamedPortServer

/// Ports on one loop, and child processes with a connection to each of the ports.
final class ConnectionField {
    /// How many messages a child sends before the next child sends.
    private static let chunk = 1_000

    private let children: [SendRight]
    private let pool: PortWorkerPool
    private let thread: ResidentThread
    private let ports: [MachPort]
    private let counter = ArrivalCounter()
    private var next = 0

    /// Makes the ports, and starts the children; no child is connected yet.
    init(ports number: Int, children: Int, rings: Bool = true) throws {
        try Self.allowDescriptors(number * (children + 3) + 500)
        thread = try ResidentThread(name: "ports")
        let loop = thread.loop
        ports = try (0..<number).map { [counter] _ in
            let port = MachPort(queueLimit: PortSink.queueLimit) { _, _ in counter.arrived() }
            try port.schedule(on: loop)
            return port
        }
        pool = try PortWorkerPool(count: children) { _ in
            let command = Child.command + Child.arguments(.ports, ["adaptive"], rings: rings)
            return try .launchProcess(WorkerProgram(command[0], Array(command.dropFirst())))
        }
        self.children = try pool.checkIn(within: .seconds(120))
    }

    /// Makes one of the children connect to all ports, by its first message to each; before the second it gets a grant.
    func connect(_ child: Int) throws {
        try giveRights(to: child)
        for _ in 0..<2 { _ = try send(ports.count, by: child) }
    }

    private func giveRights(to child: Int) throws {
        let rights = ports.map { MachMessage.Component.right($0.makeSendRight()) }
        let message = MachMessage(id: PortChild.Request.takeRights.rawValue, components: rights)
        try children[child].send(message, within: .seconds(60))
    }

    /// Makes all children connect to all ports at once, by their first messages.
    ///
    /// - Returns: the nanoseconds until the first message arrived, and until all had.
    func connectAll() throws -> (first: Int64, last: Int64) {
        for child in children.indices {
            try giveRights(to: child)
            _ = try heap(of: child)  // it has them
        }
        let last = try counter.run(ports.count * children.count) { _ in
            for child in children {
                try child.send(ports.count, id: PortChild.Request.send.rawValue, within: .seconds(10))
            }
        }
        return (counter.firstTime, last)
    }

    /// The allocated bytes in the heap of one of the children.
    func heap(of child: Int) throws -> Int {
        try children[child].request(MachMessage(id: PortChild.Request.heap.rawValue)).content()
    }

    /// The children send messages one after the other, each to all ports in turn.
    func run(_ count: Int) throws -> Int64 {
        var (left, time) = (count, Int64(0))
        while left > 0 {
            let some = min(left, Self.chunk)
            time += try send(some, by: next)
            next = (next + 1) % children.count
            left -= some
        }
        return time
    }

    private func send(_ count: Int, by child: Int) throws -> Int64 {
        try counter.run(count) { count in
            try children[child].send(count, id: PortChild.Request.send.rawValue, within: .seconds(10))
        }
    }

    func end() {
        for port in ports { port.invalidate() }
        _ = try? pool.shutDown(within: .seconds(5))
        thread.stop()
        thread.join()
    }

    private static func allowDescriptors(_ number: Int) throws {
        let limit = bare_allow_descriptors(UInt64(number))
        if limit < number { throw NotAvailable("it takes \(number) descriptors, and \(limit) are allowed") }
    }
}

extension Contestant {
    /// Messages over many connections, from the children to the ports.
    static func connections(ports: Int, children: Int, rings: Bool = true) throws -> Contestant {
        let field = try ConnectionField(ports: ports, children: children, rings: rings)
        for child in 0..<children { try field.connect(child) }
        return Contestant(
            name: ports * children == 1 ? "1 connection" : "\(ports * children) connections", timesLaps: false,
            run: { count, _ in try field.run(count) },
            end: field.end)
    }
}
