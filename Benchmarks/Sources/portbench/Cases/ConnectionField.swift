// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import Dispatch
import NamedPortServer
import Synchronization

/// A child process with many ports on its main loop, and a connection to each of them.
final class ConnectionField {
    private let child: PortProcess
    private let rights: [SendRight]
    private let tally = Tally()
    private var step = 0

    init(_ number: Int) throws {
        try Self.allowDescriptors(number)
        child = try PortProcess(.adaptive)
        rights = try Self.askForPorts(number, child)
        child.worker.port.setHandler { [tally] _, _ in tally.allArrived() }
        // The first message to each makes its connection.
        _ = try run(number)
    }

    /// Sends messages to the ports, to each in turn.
    func run(_ count: Int) throws -> Int64 {
        try tally.run(count) { count in
            let announcement = MachMessage(id: PortChild.Request.announce.rawValue, content: UInt64(count))
            _ = try child.right.request(announcement)
            for _ in 0..<count {
                step = (step + 7919) % rights.count
                try rights[step].send(PortSink.makeMessage(PortChild.Request.counted.rawValue), within: .seconds(10))
            }
        }
    }

    func end() {
        child.end()
    }

    /// What the child's heap has given out.
    func childHeap() throws -> Int {
        try child.right.request(MachMessage(id: PortChild.Request.heap.rawValue)).content()
    }

    private static func askForPorts(_ number: Int, _ child: PortProcess) throws -> [SendRight] {
        let rights = Mutex<[SendRight]>([])
        let all = DispatchSemaphore(value: 0)
        child.worker.port.setHandler { _, message in
            let count = rights.withLock { rights in
                rights += message.rights
                return rights.count
            }
            if count == number { all.signal() }
        }
        try child.right.send(number, id: PortChild.Request.makePorts.rawValue, within: .seconds(10))
        guard all.wait(timeout: .now() + 120) == .success else { throw BenchmarkFailure("the child made no ports") }
        return rights.withLock(\.self)
    }

    /// A port with a connection has three descriptors on its side: a listener, the connection, an epoll set.
    private static func allowDescriptors(_ number: Int) throws {
        let limit = bare_allow_descriptors(UInt64(number * 4 + 500))
        if limit < number * 4 + 500 {
            throw BenchmarkFailure("\(number) connections need \(number * 4 + 500) descriptors, \(limit) are allowed")
        }
    }
}

extension Contestant {
    /// Messages over many connections of two processes.
    static func connections(_ number: Int) throws -> Contestant {
        let field = try ConnectionField(number)
        return Contestant(
            name: number == 1 ? "1 connection" : "\(number) connections", timesLaps: false,
            run: { count, _ in try field.run(count) }, end: field.end)
    }
}
