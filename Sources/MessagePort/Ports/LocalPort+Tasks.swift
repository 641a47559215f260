// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// How tasks receive. Each message that is queued wakes the task that has waited longest; it looks into the queue as everybody
// does. A message leaves the queue only for a task that is running and asks for it. A task that was woken and has no use for
// it, because it was cancelled, wakes the next.

import PortSystem
import RunLoopCore
import Synchronization

extension LocalPort.State {
    /// The task to wake, because a message waits.
    mutating func nextTask() -> WaitingTask? {
        !hasExtras || mailbox.queue.isEmpty ? nil : extras.nextTask()
    }
}

extension LocalPort {
    /// Takes the oldest message, suspending the task until there is one.
    ///
    /// - Returns: the message; nil when the port is dead or the task was cancelled: nothing was taken then.
    nonisolated(nonsending) func receiveForTask() async throws(PortError) -> MachMessage? {
        try checkProcess()
        willReceiveElsewhere()
        while !Task.isCancelled {
            if let message = receive() { return message }
            let task = WaitingTask()
            guard let mustWait = enqueue(task) else { return nil }
            if !mustWait { continue }
            do throws(PortError) {
                try watchSockets()
            } catch {
                leave(task)
                wakeNextTask()  // perhaps this one was woken for a message
                throw error
            }
            await withTaskCancellationHandler {
                await task.wait()
            } onCancel: {
                task.wake()
            }
            leave(task)
        }
        wakeNextTask()  // perhaps this one was woken for a message
        return nil
    }

    /// Wakes the next task if a message waits: called by one that will not look itself.
    private func wakeNextTask() {
        state.withLock { $0.nextTask() }?.wake()
    }

    /// - Returns: whether there is no message now, and the task waits; nil when the port is dead.
    private func enqueue(_ task: WaitingTask) -> Bool? {
        state.withLock { state in
            if state.mailbox.isDead { return nil }
            guard state.mailbox.queue.isEmpty else { return false }
            state.extras.waitingTasks.append(task)
            return true
        }
    }

    private func leave(_ task: WaitingTask) {
        state.withLock { $0.extras.waitingTasks.removeAll { $0 === task } }
    }

    var hasWaitingTask: Bool { state.withLock { !$0.extras.waitingTasks.isEmpty } }

    /// Has the shared thread receive from the port's sockets, if it has any.
    private func watchSockets() throws(PortError) {
        guard let sockets else { return }
        let watch = try taskWatch()
        do throws(SystemError) {
            try watch.begin(sockets.rawValue)
        } catch {
            throw PortError(error)
        }
    }

    /// What receives from the sockets for tasks, made when there is none.
    func taskWatch() throws(PortError) -> TaskSocketWatch {
        if let watch = state.withLock({ $0.extras.taskWatch }) { return watch }
        let loop = try IOThread.loop()
        let made = TaskSocketWatch(self)
        try loop.addOrThrow(made.source, to: .default)  // before others see it: for them it is in the loop
        let winner = state.withLock { state -> TaskSocketWatch? in
            if state.mailbox.isDead { return nil }
            if state.extras.taskWatch == nil { state.extras.taskWatch = made }
            return state.extras.taskWatch
        }
        if winner !== made { made.source.invalidate() }
        return winner ?? made
    }

    /// The port has got sockets: tasks that wait already listen to them from now on.
    func watchForWaitingTasks() {
        guard hasWaitingTask else { return }
        do throws(PortError) {
            try watchSockets()
        } catch {
            // They look again, and meet the error themselves.
            let tasks = state.withLock { state in
                defer { state.extras.waitingTasks = [] }
                return state.extras.waitingTasks
            }
            for task in tasks { task.wake() }
        }
    }
}

/// Moves what arrives in a port's sockets into its queue, on the shared thread, while tasks wait for messages. When none
/// waits the sockets are not watched: what arrives stays there, and its senders wait for room.
final class TaskSocketWatch: Sendable {
    let source: RunLoopSource  // guards itself
    /// Whether the source watches the sockets. Held while that changes, so that the changes keep their order.
    let isWatching: Mutex<Bool>

    init(_ localPort: LocalPort) {
        source = RunLoopSource(name: "port tasks", keepsModeAlive: false, routine: Routine(localPort: localPort))
        isWatching = Mutex(false)
    }

    private struct Routine: SourceRoutine {
        let localPort: LocalPort

        func perform() -> SourceOutcome {
            localPort.receiveFromSockets()
            localPort.state.withLock { $0.extras.taskWatch }?.endUnlessNeeded(by: localPort)
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
