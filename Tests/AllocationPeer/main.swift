// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Counts what messages allocate, for CostTests: this program's allocator counts. Writes a line for each kind of
// traffic, "KIND ALLOCATIONS MESSAGES"; or "uncounted".

import CAllocationCounter
import Glibc
import MessagePort
import PortSystem
import RunLoopCore

/// Enough messages to make small what happens once.
let count = 2_000

/// Does something twice, so that what is made once is there, and reports the second time.
func report(_ kind: String, _ body: () throws -> Void) throws {
    try body()
    let before = allocation_count()
    try body()
    print(kind, allocation_count() - before, count)
}

/// Messages of 64 bytes, each made anew, to a port on this thread's loop.
func stream() throws {
    let last = Int32(count - 1)
    let port = MachPort(queueLimit: count) { _, message in if message.id == last { ThreadRunLoop.current.stop() } }
    try port.schedule()
    defer { port.invalidate() }
    let right = port.makeSendRight()
    try report("stream") {
        for id in 0...last {
            let message = MachMessage(id: id, byteCapacity: 64) { $0.append(repeating: 7, count: 64) }
            try right.send(message, within: .seconds(60))
        }
        _ = ThreadRunLoop.current.run()
    }
}

/// Requests to a port on another thread's loop, which answers with what it got.
func requests() throws {
    let server = try ResidentThread(name: "server")
    let port = MachPort { _, message in try? message.reply(MachMessage(id: 2, components: message.components)) }
    try port.schedule(on: server.loop)
    let (right, message) = (port.makeSendRight(), MachMessage(id: 1, bytes: [UInt8](repeating: 7, count: 64)))
    try report("requests") { for _ in 0..<count { _ = try right.request(message) } }
    port.invalidate()
    server.stop()
    server.join()
}

/// Messages of 64 bytes, each made anew, over a socket, at whose other end they are received without the library.
func sends() throws {
    setenv("PORT_RING", "never", 1)  // the offer would not be accepted
    let (near, far) = try sysPacketSocketPair()
    let connection = try SocketConnection(toPort: near)
    var packet = [UInt8](repeating: 0, count: 1_000)
    try report("sends") {
        for _ in 0..<count {
            let message = MachMessage(id: 1, bytes: [UInt8](repeating: 7, count: 64))
            try connection.send(message, until: .after(.seconds(60)))
            guard recv(far.rawValue, &packet, packet.count, 0) == 112 else { fatalError("another packet came") }
        }
    }
}

if allocations_are_counted() == 0 {
    print("uncounted")
} else {
    try stream()
    try requests()
    try sends()
}
