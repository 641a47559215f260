// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A thread that waits for tasks in its run loop, beside the polling thread that it replaces.

import Foundation
import RunLoopCore

let taskCount = 5

/// Gives each thread a task every 40 ms, and returns when all of them are done.
func giveTasks(_ perform: @escaping @Sendable (_ task: @escaping @Sendable () -> Void) -> Void) {
    let (given, done) = (LoopBound(0), LoopBound(0))
    let main = ThreadRunLoop.current
    let timer = RunLoopTimer(name: "next task", after: .milliseconds(40), interval: .milliseconds(40)) { timer in
        given.value += 1
        if given.value == taskCount { timer.invalidate() }
        perform {
            main.perform {
                done.value += 1
                if done.value == taskCount { main.stop() }
            }
        }
    }
    main.add(timer)
    main.run()
}

func pollingThread() {
    let thread = PollingThread()
    thread.start()
    giveTasks { task in thread.queueAction(task) }
    thread.stop()
    let (polls, forNothing) = (thread.polls, thread.emptyPolls)
    print("polling thread: \(taskCount) tasks, woke about \(polls) times, about \(forNothing) times for nothing")
}

func residentThread() throws {
    let thread = try ResidentThread(name: "resident")
    let counter = WakeCounter()
    try thread.performAndWait(within: .seconds(10)) { counter.watch(.current) }
    giveTasks { task in
        do {
            try thread.perform {
                counter.noteWork()
                task()
            }
        } catch {
            FileHandle.standardError.write(Data("resident: \(error)\n".utf8))
            exit(1)
        }
    }
    let (wakes, forNothing) = (counter.wakes, counter.emptyWakes)
    print("resident thread: \(taskCount) tasks, woke about \(wakes) times, \(forNothing) times for nothing")

    // A task posted before the stop is done; a later one is refused.
    try thread.perform { print("resident thread: the task before the stop is done") }
    thread.stop()
    thread.join()
    do {
        try thread.perform {}
    } catch {
        print("resident thread: a task after the stop is refused: \(error.code)")
    }
}

/// A thread whose owner releases it leaves too.
func forgottenThread() throws {
    let main = ThreadRunLoop.current
    do {
        let thread = try ResidentThread(name: "forgotten")
        // A loop removes its sources when its thread leaves.
        let end = RunLoopSource(
            name: "end",
            cancel: { _, _ in
                print("forgotten thread: its last reference is gone, so it leaves")
                main.stop()
            }, perform: {})
        thread.loop.add(end)
    }
    main.run()
}

do {
    pollingThread()
    try residentThread()
    try forgottenThread()
} catch {
    FileHandle.standardError.write(Data("resident: \(error)\n".utf8))
    exit(1)
}
