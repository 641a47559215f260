// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import Foundation
import FoundationPorts
import Glibc

extension Contestant {
    /// Requests of this process to a CFMessagePort of another one, both on run loops of CoreFoundation.
    static func cfMessagePort(on placement: Placement) throws -> Contestant {
        let name = "org.example.portbench.cf.\(getpid())"
        let child = try BareChild(bare_stream, .messagePort, texts: [name], at: placement.far)
        var byte: UInt8 = 0
        guard recv(child.socket, &byte, 1, 0) == 1, let remote = CFMessagePortCreateRemote(nil, name as CFString) else {
            child.end()
            throw BenchmarkFailure("the child has made no CFMessagePort")
        }
        let data = Data(repeating: 7, count: Packet.size) as CFData
        let mode = "org.example.portbench.reply" as CFString
        return Contestant(
            name: "CFMessagePort",
            run: { count, laps in
                try placement.near.run {
                    try timed(count, laps) {
                        var reply: Unmanaged<CFData>?
                        let status = CFMessagePortSendRequest(remote, 1, data, 10, 10, mode, &reply)
                        reply?.release()
                        if status != kCFMessagePortSuccess { throw BenchmarkFailure("CFMessagePort: \(status)") }
                    }
                }
            },
            end: {
                CFMessagePortInvalidate(remote)
                child.end()
            })
    }
}

/// The other process: a CFMessagePort on the main thread's run loop of CoreFoundation.
enum CFMessagePortChild {
    static func run(_ name: String) throws {
        nonisolated(unsafe) let answer = Data(repeating: 7, count: Packet.size) as CFData  // nobody changes it
        let port = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in .passRetained(answer) }, nil, nil)
        guard let port, let source = CFMessagePortCreateRunLoopSource(nil, port, 0) else {
            throw BenchmarkFailure("no CFMessagePort: its reason is above")
        }
        CFRunLoopAddSource(CFRunLoopGetCurrent(), source, .defaultMode)
        Thread {
            var byte: UInt8 = 1
            send(Child.socket, &byte, 1, 0)
            // Until the other process closes its end.
            recv(Child.socket, &byte, 1, 0)
            exit(EXIT_SUCCESS)
        }.start()
        CFRunLoopRun()
        withExtendedLifetime(port) {}
    }
}
