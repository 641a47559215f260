// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import Glibc

/// Child processes that do nothing but occupy a processor each, as the load of a busy machine. They run wherever the
/// kernel puts them, and end as every child does: at the latest when this program ends, and after a limit by themselves.
final class BusyLoops {
    /// The most that can be ordered.
    static let most = 256

    private var children: [BareChild] = []

    /// Starts them, and returns when all run.
    init(_ number: Int) throws {
        do {
            for _ in 0..<number { children.append(try BareChild(bare_stream, .busy, [])) }
            for child in children {
                var byte: UInt8 = 0
                guard recv(child.socket, &byte, 1, 0) == 1 else { throw BenchmarkFailure("a busy loop has ended") }
            }
        } catch {
            end()
            throw error
        }
    }

    func end() {
        for child in children { child.kill() }
        children = []
    }

    /// In the child: reports that it runs, and runs until it is killed.
    static func run() -> Never {
        var byte: UInt8 = 1
        send(Child.socket, &byte, 1, Int32(MSG_NOSIGNAL))
        while true {}
    }
}
