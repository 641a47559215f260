// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import CoreFoundation
import Foundation
import NamedPortServer

extension Case {
    /// How much of the heap ports and connections occupy.
    static var memory: [Case] {
        [Case("memory.port", measure: ports), Case("memory.connection", measure: connections)]
    }

    private static func ports(_ settings: Settings) throws -> [CaseResult] {
        let number = settings.isQuick ? 10_000 : 100_000
        let thread = try ResidentThread(name: "ports")
        defer {
            thread.stop()
            thread.join()
        }
        let loop = thread.loop
        // Memory that the loop retains from its first port on does not count for a port.
        let first = MachPort()
        try first.schedule(on: loop)
        defer { first.invalidate() }
        var ports: [MachPort] = []
        let idle = try bytes(each: number) {
            ports = try (0..<number).map { _ in
                let port = MachPort()
                try port.schedule(on: loop)
                return port
            }
        }
        // A port without a right to it is of no use, so the goal is for both.
        var rights: [SendRight] = []
        let rightBytes = bytes(each: number) { rights = ports.map { $0.makeSendRight() } }
        withExtendedLifetime(rights) {}
        for port in ports { port.invalidate() }
        let foundation = try sources(number)
        return [
            CaseResult(
                "memory.port", "scheduled, with a send right", .bytes, ours: Score(idle + rightBytes),
                baseline: ("CFRunLoop source1", Score(foundation)), goal: Goal(value: 600)),
            CaseResult(
                "memory.port", "scheduled", .bytes, ours: Score(idle),
                baseline: ("CFRunLoop source1", Score(foundation))),
        ]
    }

    /// The bytes of a version-1 source in a CFRunLoop. Its descriptor, which is memory of the kernel, does not count.
    private static func sources(_ number: Int) throws -> Double {
        let loop: CFRunLoop = CFRunLoopGetCurrent()
        var sources: [CFRunLoopSource?] = []
        // Each needs a descriptor of its own, so there are fewer.
        let some = min(number, 5_000)
        let eventfds = (0..<some).map { _ in bare_make_eventfd() }
        defer { for eventfd in eventfds { close(eventfd) } }
        let result = bytes(each: some) {
            sources = eventfds.map { eventfd in
                var context = CFRunLoopSourceContext1()
                context.version = 1
                context.info = UnsafeMutableRawPointer(bitPattern: Int(eventfd))
                context.getPort = { Int32(Int(bitPattern: $0)) }
                let source = withUnsafeMutablePointer(to: &context) { context in
                    context.withMemoryRebound(to: CFRunLoopSourceContext.self, capacity: 1) {
                        CFRunLoopSourceCreate(nil, 0, $0)
                    }
                }
                CFRunLoopAddSource(loop, source, kCFRunLoopDefaultMode)
                return source
            }
        }
        for source in sources { CFRunLoopSourceInvalidate(source) }
        return result
    }

    private static func connections(_ settings: Settings) throws -> [CaseResult] {
        let (ports, children) = (100, settings.isQuick ? 5 : 10)
        let field = try ConnectionField(ports: ports, children: children)
        defer { field.end() }
        // The first child makes the ports reachable, which does not count for a connection.
        try field.connect(0)
        let last = children - 1
        let before = try (1...last).map { try field.heap(of: $0) }
        let served = try bytes(each: ports * last) { for child in 1...last { try field.connect(child) } }
        // A thread that receives for the first time meanwhile makes a buffer, which does not count for a connection.
        let used = try zip(1...last, before).map { Double(try field.heap(of: $0) - $1) / Double(ports) }.min() ?? 0
        let foundation = try sockets(1_000)
        func row(_ variant: String, _ value: Double) -> CaseResult {
            CaseResult(
                "memory.connection", variant, .bytes, ours: Score(value),
                baseline: ("CFSocket in CFRunLoop", Score(foundation)), goal: Goal(value: 1_000))
        }
        return [row("receiving side", served), row("sending side", used)]
    }

    /// The bytes of a socket of CoreFoundation's with its source in a run loop.
    private static func sockets(_ number: Int) throws -> Double {
        let loop: CFRunLoop = CFRunLoopGetCurrent()
        var sockets: [CFSocket?] = []
        var ends: [Int32] = Array(repeating: -1, count: 2 * number)
        for index in 0..<number {
            let isMade = ends[(2 * index)...].withUnsafeMutableBufferPointer { pair in
                pair.baseAddress.map { bare_socket_pair(bare_packets, $0) == 0 } ?? false
            }
            if !isMade { throw BenchmarkFailure("no socket: \(errno)") }
        }
        let result = bytes(each: number) {
            sockets = (0..<number).map { index in
                let socket = CFSocketCreateWithNative(
                    nil, ends[2 * index], CFSocketCallBackType.readCallBack.rawValue, { _, _, _, _, _ in }, nil)
                CFRunLoopAddSource(loop, CFSocketCreateRunLoopSource(nil, socket, 0), kCFRunLoopDefaultMode)
                return socket
            }
        }
        for socket in sockets { CFSocketInvalidate(socket) }
        for index in 0..<number { close(ends[2 * index + 1]) }
        return result
    }

    /// By how many bytes the heap grows, for each of `number` objects.
    private static func bytes(each number: Int, _ make: () throws -> Void) rethrows -> Double {
        let before = bare_heap_bytes()
        try make()
        return (Double(bare_heap_bytes()) - Double(before)) / Double(number)
    }
}
