// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import MessagePort
import PortSystem
import RunLoopCore
import Testing

/// Makes what a process retains once it has had sockets: a spare descriptor, and the threads that close descriptors and
/// receive for tasks. For the warm-up of a leak check.
@Sendable package func warmUpIOThread() throws {
    ReservedDescriptor.shared.reserve()
    AsyncCloser.start()
    try warmedUpIOThread.get()
}

/// The I/O thread sends unflushed packets, and retains the connection until it is done; the test may be done before
/// it.
package func waitForIOThread() {
    guard let loop = IOThread.startedLoop else { return }
    // It may have to see what the test has done, to ask the kernel about that, to act, and to end the pass in which it
    // did. That is enough for one thing left to it; each connection that has ended and was watched is another.
    var (passCount, left) = (0, 4)
    while left > 0, passCount < 100 {
        let done = Gate("the next block of the I/O thread")
        loop.perform { done.open() }
        guard done.wait() else { return }
        passCount += 1
        left = IOThread.hasSingleWatch ? max(left - 1, 2) : left - 1
    }
    // What it has released may hold descriptors of the peer, which another thread closes.
    let deadline = Watchdog.deadline
    while !AsyncCloser.isIdle, .now < deadline { yieldThread() }
}

/// The loop has watched a descriptor, so its eventfd and its epoll set exist. The descriptor stays open.
private let warmedUpIOThread = Result {
    var ends: [CInt] = [-1, -1]
    guard pipe(&ends) == 0 else { throw SystemError(errno) }
    for end in ends {
        retainedEnds.append(SharedDescriptor(owning: end))
        try sysCloseOnExec(end)
    }
    _ = try sysWrite(ends[1], [1])
    let reading = ends[0]
    let hasRun = Gate("the I/O thread's wait")
    let source = RunLoopSource(name: "a byte for the I/O thread", descriptor: reading) {
        _ = try? sysDiscard(reading, 1)
        hasRun.open()
    }
    try IOThread.loop().add(source)
    hasRun.wait()
    source.invalidate()
    _ = try IOThread.arrivals()
    _ = try IOThread.rooms()
}

private let retainedEnds = Recorder<SharedDescriptor>()
