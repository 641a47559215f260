// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import Foundation
import NamedPortServer

extension Case {
    /// The cost of a program whose ports have nothing to do.
    static var idle: Case {
        Case("idle") { settings in
            let child = try PortProcess(.adaptive)
            defer { child.end() }
            let ports = try (0..<1_000).map { _ in
                let port = MachPort { _, _ in }
                try port.schedule(on: child.thread.loop)
                return port
            }
            defer { for port in ports { port.invalidate() } }
            // Some traffic before, so that the loops have a reason to spin if they ever do.
            _ = try child.right.request(MachMessage(id: PortChild.Request.heap.rawValue))
            let bare = BareSleeper()
            defer { bare.end() }
            guard case .process(let process) = child.worker.identity else { throw BenchmarkFailure("no process") }
            let here = getpid()
            let loop = try threadID(of: child.thread)
            // Lets the traffic end: a loop spins for less than a millisecond.
            usleep(200_000)
            let used = try ThreadUse.of(
                [(here, loop), (process, process), (here, bare.thread)], seconds: settings.rest)
            func row(_ variant: String, _ unit: Unit, _ number: (ThreadUse) -> Int) -> CaseResult {
                CaseResult(
                    "idle", "\(variant) in \(settings.rest) s", unit,
                    ours: Score(Double(number(used[0]) + number(used[1]))),
                    baseline: ("bare epoll", Score(Double(number(used[2])))), goal: Goal(value: 0))
            }
            return [row("wake-ups", .wakeUps, \.wakeUps), row("CPU time", .microseconds, \.time)]
        }
    }

    private static func threadID(of thread: ResidentThread) throws -> Int32 {
        try thread.performAndWait(within: .seconds(10)) { bare_thread_id() }
    }
}

/// A thread that waits in epoll for an eventfd.
private final class BareSleeper {
    private let eventfd = bare_make_eventfd()
    private let ended = DispatchSemaphore(value: 0)
    let thread: Int32

    init() {
        let (eventfd, ended, started, number) = (eventfd, ended, DispatchSemaphore(value: 0), ThreadNumber())
        Thread {
            number.value = bare_thread_id()
            started.signal()
            bare_wait_readable(eventfd)
            ended.signal()
        }.start()
        started.wait()
        thread = number.value
    }

    func end() {
        bare_ring(eventfd)
        ended.wait()
        close(eventfd)
    }
}

/// @unchecked: written before the semaphore is signalled, read after that.
private final class ThreadNumber: @unchecked Sendable {
    var value: Int32 = 0
}
