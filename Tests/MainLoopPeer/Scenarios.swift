// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Dispatch
import Foundation
import RunLoopCore

/// The scenarios, by name. All but those of "ours only" print the same over both loops.
let scenarios: [String: @Sendable (any MainLoop) -> Void] = [
    "blocks": blocks, "actor": actor, "order": order, "idle": idle, "empty": empty, "nested": nested,
    "nested-alone": nestedAlone, "stop": stop, "sync": sync, "fair": fair, "main": mainLoop, "modes": modes,
    "perform": perform,
    "stream": stream, "at-limit": atLimit, "unserved": unserved,
    "monitor": monitor,
]

/// Two runs that use nothing of Dispatch, as where the system refuses it what it needs.
private func unserved(_ loop: any MainLoop) {
    for number in 1...2 {
        loop.timer(after: 0) {
            say("timer \(number)")
            loop.stop()
        }
        say(loop.run(30, mode: nil))
    }
    say(loop.run(0.001, mode: nil))
}

/// Blocks from before the run, from a block, and from another thread.
private func blocks(_ loop: any MainLoop) {
    DispatchQueue.main.async {
        say("before \(Thread.isMainThread)")
        DispatchQueue.main.async {
            say("inner")
            Thread.detachNewThread {
                DispatchQueue.main.async {
                    say("other thread's \(Thread.isMainThread)")
                    loop.stop()
                }
            }
        }
    }
    say(loop.run(30, mode: nil))
}

/// The main actor runs on the main loop.
private func actor(_ loop: any MainLoop) {
    Task { @MainActor in
        say("main actor \(Thread.isMainThread)")
        let sum = await Task.detached { await onMain(1) + onMain(2) }.value
        say("sum \(sum)")
        loop.timer(after: 0) {
            MainActor.assumeIsolated { say("assumed") }
            loop.stop()
        }
    }
    say(loop.run(30, mode: nil))
}

@MainActor private func onMain(_ number: Int) -> Int { number }

/// In the first pass the queue is an event like others; in later passes it goes first, and no observer of waiting is
/// notified.
private func order(_ loop: any MainLoop) {
    loop.observe { say($0) }
    let signal = loop.source {
        say("source")
        DispatchQueue.main.async {
            say("second block")
            DispatchQueue.main.async {
                say("third block")
                loop.stop()
            }
        }
    }
    DispatchQueue.main.async {
        say("first block")
        signal()
    }
    say(loop.run(30, mode: nil))
}

/// The queue's service is no handled source, and a run goes on because the queue is there.
private func idle(_ loop: any MainLoop) {
    loop.observe { say($0) }
    say(loop.run(0.01, mode: nil))
    say(loop.run(0, mode: nil))
    DispatchQueue.main.async { say("block") }
    say(loop.run(0, mode: nil))
}

/// The queue keeps common modes alive, and no other.
private func empty(_ loop: any MainLoop) {
    say("default " + loop.run(0.01, mode: nil))
    say("unknown " + loop.run(0.01, mode: "unknown"))
    loop.addCommonMode("common one")
    let signal = loop.source {}
    signal()
    say("default " + loop.run(0, mode: nil))
}

/// A run inside of a block does not serve the queue; what came meanwhile is served after it.
private func nested(_ loop: any MainLoop) {
    DispatchQueue.main.async {
        DispatchQueue.main.async {
            say("after")
            loop.stop()
        }
        loop.timer(after: 0.01) { loop.stop() }
        say("nested " + loop.run(30, mode: nil))
    }
    say(loop.run(30, mode: nil))
}

/// A run inside of a block with nothing else to wait for finishes at once.
private func nestedAlone(_ loop: any MainLoop) {
    DispatchQueue.main.async {
        say("nested " + loop.run(30, mode: nil))
        loop.stop()
    }
    say(loop.run(30, mode: nil))
}

/// A stop from a block ends the run; what waits behind is served by the next.
private func stop(_ loop: any MainLoop) {
    DispatchQueue.main.async { loop.stop() }
    say(loop.run(30, mode: nil))
    DispatchQueue.main.async {
        say("second run")
        loop.stop()
    }
    say(loop.run(30, mode: nil))
}

/// Another thread waits for the main thread.
private func sync(_ loop: any MainLoop) {
    Thread.detachNewThread {
        for number in 1...3 {
            let isMain = DispatchQueue.main.sync { Thread.isMainThread }
            say("sync \(number) \(isMain)")
        }
        loop.stop()
    }
    say(loop.run(30, mode: nil))
}

/// Ours only: a queue that is never empty and a timer that is always due do not keep each other waiting.
private func fair(_ loop: any MainLoop) {
    let counts = LoopBound((blocks: 0, firings: 0))
    @Sendable func again() {
        counts.value.blocks += 1
        DispatchQueue.main.async { again() }
    }
    again()
    let timer = RunLoopTimer(fireDate: .now, interval: .nanoseconds(1)) { _ in
        counts.value.firings += 1
        if counts.value.firings >= 1000, counts.value.blocks >= 10 { loop.stop() }
    }
    ThreadRunLoop.main.add(timer)
    say(loop.run(30, mode: nil))
    timer.invalidate()
}

/// When a block of the queue is served beside a source that is always ready.
private func stream(_ loop: any MainLoop) {
    let counts = LoopBound((performed: 0, next: 2, served: 0, latest: 0))
    loop.stream {
        counts.value.performed += 1
        let count = counts.value.performed
        if count != counts.value.next { return }
        DispatchQueue.main.async {
            counts.value.latest = max(counts.value.latest, counts.value.performed - count)
            counts.value.served += 1
            // CFRunLoop skips the queue in the pass after one that has served it.
            counts.value.next = counts.value.performed + 3
            // Where the queue is polled now and then, a block may come just before that.
            if counts.value.served < (counts.value.latest == 0 ? 1_000 : 100) { return }
            let late = counts.value.latest
            say(late == 0 ? "at once" : late <= 128 ? "later" : "too late: \(late)")
            loop.stop()
        }
    }
    say(loop.run(30, mode: nil))
}

/// Only of this library: the main loop is found from everywhere, and accepts work from every thread.
private func mainLoop(_ loop: any MainLoop) {
    let main = ThreadRunLoop.main
    say("\(main == .current) \(main.isCurrent)")
    Thread.detachNewThread {
        say("\(main == .current) \(main.isCurrent) \(main == .main)")
        main.perform {
            say("performed \(Thread.isMainThread)")
            main.stop()
        }
    }
    main.run()
    say("\(main.contains(RunLoopSource {})) \(main.allModes.count)")
}

/// Ours only: the perform family on the main thread, asked for by another.
private func perform(_ loop: any MainLoop) {
    let main = ThreadRunLoop.main
    let cancelled = main.perform(after: .seconds(3600)) { say("cancelled") }
    Thread.detachNewThread {
        let isMain = try? main.performAndWait(within: .seconds(30)) { Thread.isMainThread }
        say("waited \(isMain == true) \(cancelled.cancel())")
        main.perform(after: .milliseconds(1)) {
            say("later \(Thread.isMainThread)")
            let inline = try? main.performAndWait(within: .zero) { "inline" }
            say(inline ?? "not inline")
            main.stop()
        }
    }
    say(loop.run(30, mode: nil))
}

/// Ours only: the queue is served in each common mode, also in one that becomes common later, and in no other.
private func modes(_ loop: any MainLoop) {
    let main = ThreadRunLoop.main
    main.add(RunLoopSource {}, to: "private")
    DispatchQueue.main.async { say("block") }
    say("private " + loop.run(0.01, mode: "private"))
    main.addCommonMode("shared")
    DispatchQueue.main.async { loop.stop() }
    say("shared " + loop.run(30, mode: "shared"))
}

/// Ours only: the loop runs for the first time when no descriptor is left.
private func atLimit(_ loop: any MainLoop) {
    var allowed = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &allowed)
    var none = allowed
    none.rlim_cur = 0
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &none)
    loop.timer(after: 0.05) { [allowed] in
        var allowed = allowed
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &allowed)
        say("restored")
        DispatchQueue.main.async {
            say("block")
            loop.stop()
        }
    }
    say(loop.run(30, mode: nil))
}
