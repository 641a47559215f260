// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// How tasks receive. Each message that is queued wakes the longest-waiting task, which polls the queue as every
// receiver does. A message leaves the queue only for a task that is running and asks for it. A woken task that does not
// take the message, because it was cancelled, wakes the next.

import PortSystem
import RunLoopCore
import Synchronization

extension LocalPort.State {
    /// The task to wake, because a message waits.
    mutating func nextTask() -> TaskWaiter? {
        !hasColdState || mailbox.queue.isEmpty || mailbox.isFrozen ? nil : coldState.nextTask()
    }
}

extension LocalPort {
    /// Dequeues the oldest message; suspends the task until there is one.
    ///
    /// - Returns: the message; nil when the port is dead or the task was cancelled: then nothing was dequeued.
    nonisolated(nonsending) func receiveForTask() async throws(PortError) -> MachMessage? {
        try checkProcess()
        willReceiveElsewhere()
        while !Task.isCancelled {
            if let message = receive() { return message }
            let task = TaskWaiter()
            guard let mustWait = enqueue(task) else { return nil }
            if !mustWait { continue }
            do throws(PortError) {
                try watchSockets()
            } catch {
                leave(task)
                wakeNextTask()  // perhaps this one was woken for a message
                throw error
            }
            try? await task.wait()  // until it was woken, or cancelled
            leave(task)
        }
        wakeNextTask()  // perhaps this one was woken for a message
        return nil
    }

    /// Wakes the next task if a message waits: called by a task that will not poll itself.
    private func wakeNextTask() {
        state.withLock { $0.nextTask() }?.wake()
    }

    /// - Returns: whether no message waits now, and the task waits; nil when the port is dead.
    private func enqueue(_ task: TaskWaiter) -> Bool? {
        state.withLock { state in
            if state.mailbox.isDead { return nil }
            guard state.mailbox.queue.isEmpty || state.mailbox.isFrozen else { return false }
            state.coldState.waitingTasks.append(task)
            return true
        }
    }

    private func leave(_ task: TaskWaiter) {
        state.withLock { $0.coldState.waitingTasks.removeAll { $0 === task } }
    }

    var hasWaitingTask: Bool { state.withLock { !$0.coldState.waitingTasks.isEmpty } }

    /// Has the I/O thread receive from the port's sockets, if it has any.
    private func watchSockets() throws(PortError) {
        guard let sockets else { return }
        let receiver = try taskReceiver()
        try PortError.converting(receiver.begin(sockets.rawValue))
    }

    /// What receives from the sockets for tasks; makes it when there is none.
    func taskReceiver() throws(PortError) -> TaskReceiver {
        if let receiver = state.withLock({ $0.coldState.taskReceiver }) { return receiver }
        let loop = try IOThread.loop()
        let made = TaskReceiver(self)
        try loop.addOrThrow(made.source, to: .default)  // before other threads see it: they expect it in the loop
        let winner = state.withLock { state -> TaskReceiver? in
            if state.mailbox.isDead { return nil }
            if state.coldState.taskReceiver == nil { state.coldState.taskReceiver = made }
            return state.coldState.taskReceiver
        }
        if winner !== made { made.source.invalidate() }
        return winner ?? made
    }

    /// Has tasks that wait already receive from the port's new sockets.
    func watchForWaitingTasks() {
        guard hasWaitingTask else { return }
        do throws(PortError) {
            try watchSockets()
        } catch {
            // They poll again, and throw the error themselves.
            let tasks = state.withLock { state in
                defer { state.coldState.waitingTasks = [] }
                return state.coldState.waitingTasks
            }
            for task in tasks { task.wake() }
        }
    }
}

/// Moves what arrives in a port's sockets into its queue, on the I/O thread, while tasks wait for messages. Otherwise
/// the sockets are not watched: what arrives stays there, and its senders wait for room.
final class TaskReceiver: Sendable {
    let source: RunLoopSource  // guards itself
    /// Whether the source watches the sockets. Locked while that changes, so that the changes keep their order.
    let isWatching: Mutex<Bool>

    init(_ localPort: LocalPort) {
        source = RunLoopSource(name: "port tasks", keepsModeAlive: false, routine: Routine(localPort: localPort))
        isWatching = Mutex(false)
    }

    private struct Routine: SourceRoutine {
        let localPort: LocalPort

        func perform() -> SourceOutcome {
            localPort.receiveFromSockets()
            localPort.state.withLock { $0.coldState.taskReceiver }?.endUnlessNeeded(by: localPort)
            return .handled
        }
    }

    func begin(_ descriptor: CInt) throws(SystemError) {
        try isWatching.withLock { (isWatching) throws(SystemError) in
            if isWatching { return }
            try source.watch(pollable: descriptor)
            isWatching = true
        }
    }

    private func endUnlessNeeded(by localPort: LocalPort) {
        isWatching.withLock { isWatching in
            if !isWatching || localPort.hasWaitingTask { return }
            try? source.watch(pollable: nil)
            isWatching = false
        }
    }
}
