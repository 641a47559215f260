// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import NamedPortServer

/// A thread with a run loop that serves many ports.
final class PortField {
    private let thread: ResidentThread
    private let ports: [MachPort]
    private let rights: [SendRight]
    private let counter = ArrivalCounter()
    private var step = 0

    init(_ number: Int) throws {
        thread = try ResidentThread(name: "ports")
        let loop = thread.loop
        ports = try (0..<number).map { [counter] _ in
            let port = MachPort(queueLimit: PortSink.queueLimit) { _, _ in counter.arrived() }
            try port.schedule(on: loop)
            return port
        }
        rights = ports.map { $0.makeSendRight() }
    }

    /// Sends messages to the first `active` ports, to each in turn.
    func run(_ count: Int, to active: Int) throws -> Int64 {
        try counter.run(count) { count in
            for _ in 0..<count {
                // Not in the order in which they were made, which is that of their addresses in memory.
                step = (step + 7919) % active
                try rights[step].send(PortSink.makeMessage(), within: .seconds(10))
            }
        }
    }

    /// Returns when the loop waits in the kernel.
    func waitUntilAsleep() {
        while !thread.loop.isWaiting { usleep(1_000) }
    }

    func end() {
        for port in ports { port.invalidate() }
        thread.stop()
        thread.join()
    }

    /// The descriptors that this process has open, each with its target.
    static func descriptors() throws -> Set<String> {
        let (files, directory) = (FileManager.default, "/proc/self/fd/")
        return Set(
            try files.contentsOfDirectory(atPath: directory).compactMap { number in
                // The descriptor of this listing itself is closed by now.
                (try? files.destinationOfSymbolicLink(atPath: directory + number)).map { "\(number) \($0)" }
            })
    }
}

extension Contestant {
    /// Messages to all ports of one loop.
    static func portField(_ number: Int) throws -> Contestant {
        let field = try PortField(number)
        return Contestant(
            name: number == 1 ? "1 port" : "\(number) ports", timesLaps: false,
            run: { count, _ in try field.run(count, to: number) }, end: field.end)
    }

    /// Messages to `active` ports of a field that is used again.
    static func portField(_ field: PortField, active: Int) -> Contestant {
        Contestant(name: "ports", timesLaps: false, run: { count, _ in try field.run(count, to: active) })
    }
}
