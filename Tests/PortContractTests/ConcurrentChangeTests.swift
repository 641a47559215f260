// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Two threads change one port. Locks of the library, held here, stop one of them at the moment that matters.

import Glibc
@testable import MessagePort
import PortSystem
@testable import RunLoopCore
import Synchronization
import TestSupport
import Testing

@Suite("changes at the same time", .tasks) struct ConcurrentChangeTests {
    private typealias Rule = SystemCallFaults.Rule

    @Test("a port that ends while it is being scheduled is not retained")
    func scheduledWhileInvalidated() async throws {
        try await onBench(over: .memory) { bench in
            weak var gone: MachPort?
            do {
                let port = try bench.port()
                gone = port
                // What is left when the port ends after it has made its source, before that is recorded.
                let source = port.makeSource(0).source
                port.invalidate()
                source.invalidate()
                port.state.withLock { $0.binding = .owning(source) }
                #expect(portError { () throws(PortError) in try port.schedule() }?.code == .invalidPort)
            }
            #expect(gone == nil)
        }
    }

    @Test("a task that is woken for a message, and cannot wait, wakes the next")
    func failingTask() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let receiver = try port.localPort.taskReceiver()
            let first = Box<TestThread<PortError?>>()
            try receiver.isWatching.withLock { _ in
                // It stops where it is about to watch the sockets, for which it will have no descriptor.
                first.value.withLock { $0 = runOnThread { Self.failToWait(port) } }
                while !port.localPort.hasWaitingTask { yieldThread() }
                port.localPort.state.withLock { $0.coldState.waitingTasks.append(TaskWaiter()) }
                try port.makeSendRight().send(MachMessage(id: 1))
                #expect(port.localPort.state.withLock { $0.coldState.waitingTasks.count } == 1)
            }
            #expect(try first.value.withLock { $0 }?.join()?.code == .descriptorLimit)
            #expect(!port.localPort.hasWaitingTask)
            #expect(try port.next().id == 1)
            port.invalidate()
        }
    }

    private static func failToWait(_ port: MachPort) -> PortError? {
        SystemCallFaults.with([Rule(.epoll_ctl, .fail(EMFILE)), Rule(.epoll_create, .fail(EMFILE))]) {
            portError { () throws(PortError) in
                try immediately { () async throws(PortError) in _ = try await port.localPort.receiveForTask() }
            }
        }.result
    }

    @Test("what receives for tasks is in its loop before a second task sees it")
    func taskReceiver() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let loop = try IOThread.loop()
            let (first, begun) = (Box<TestThread<TaskReceiver>>(), Gate("the first task"))
            let early = loop.state.withLock { _ in
                // It stops where the source enters the loop.
                first.value.withLock {
                    $0 = runOnThread {
                        begun.open()
                        return try port.localPort.taskReceiver()
                    }
                }
                begun.wait()
                for _ in 0..<5000 where port.localPort.state.withLock({ $0.coldState.taskReceiver == nil }) {
                    yieldThread()
                }
                return port.localPort.state.withLock { $0.coldState.taskReceiver }
            }
            #expect(early == nil)
            let made = try first.value.withLock { $0 }?.join()
            #expect(made != nil && port.localPort.state.withLock { $0.coldState.taskReceiver } === made)
            port.invalidate()
        }
    }
}
