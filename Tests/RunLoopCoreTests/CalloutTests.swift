// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Runtime
import TestSupport
import Testing

@Suite(.leakCheck) struct CalloutTests {
    @Test("S9: the stack of a handler names the kind of callout")
    func frames() async throws {
        let seen = Recorder<String>()
        try await onLoop { loop in
            let note: @Sendable () -> Void = {
                // Where in the sources costs many times what the names cost.
                let frames = (try? Backtrace.capture())?.symbolicated(options: .useSymbolCache)?.frames
                seen.append(calloutNames(of: frames?.compactMap(\.symbol?.name) ?? []).joined(separator: " "))
            }
            loop.add(RunLoopObserver(activities: .entry) { _, _ in note() })
            loop.add(RunLoopTimer(fireDate: .distantPast) { _ in note() })
            loop.perform { note() }
            let source = RunLoopSource { note() }
            loop.add(source)
            source.signal()
            loop.run(for: .zero)
            let mailbox = Mailbox { _ in note() }
            mailbox.putSilently(1)
            loop.add(mailbox.source, to: "other")
            loop.run(mode: "other", for: .zero)
            try onNewThread { _ = Ending(on: loop, note) }
            loop.add(idleSource(), to: "jobs")
            loop.addCommonMode("jobs")
            loop.run(mode: "jobs", for: .zero)
        }
        #expect(
            seen.elements == [
                "AN_OBSERVER_CALLBACK_FUNCTION", "A_BLOCK", "A_SOURCE0_PERFORM_FUNCTION", "A_TIMER_CALLBACK_FUNCTION",
                "A_SOURCE1_PERFORM_FUNCTION", "AN_EXECUTOR_JOB",
            ])
    }

    @Test("S14: add, remove, signal, ring, wake, post, stop and invalidate from 8 threads while the loop runs nested")
    func storm() async throws {
        try await onLoop { loop in
            let performed = Counter("blocks")
            let ended = Counter("threads")
            loop.add(idleSource())
            loop.add(idleSource(), to: "inner")
            let nesting = RunLoopTimer(fireDate: .now, interval: .milliseconds(1)) { _ in
                loop.run(mode: "inner", for: .milliseconds(1))
            }
            loop.add(nesting, to: .common)
            let threads = (0..<8).map { number in
                runOnThread {
                    let mailbox = Mailbox { _ in }
                    let source = RunLoopSource {}
                    for round in 0..<200 {
                        let mode: RunLoopMode = [.default, "inner", .common][(number + round) % 3]
                        loop.add(mailbox.source, to: mode)
                        loop.add(source, to: mode)
                        mailbox.put(round)
                        source.signal()
                        let timer = RunLoopTimer(fireDate: .now, interval: .microseconds(50)) { _ in }
                        let observer = RunLoopObserver(activities: .all, repeats: round % 2 == 0) { _, _ in }
                        loop.add(timer, to: mode)
                        loop.add(observer, to: mode)
                        loop.perform(in: [mode]) { performed.increment() }
                        loop.wakeUp()
                        if round % 16 == 0 { loop.stop() }
                        timer.setNextFireDate(.after(.microseconds(10)))
                        loop.remove(mailbox.source, from: mode)
                        timer.invalidate()
                        observer.invalidate()
                        if round % 32 == 0 { loop.addCommonMode(RunLoopMode("mode \(round)")) }
                    }
                    mailbox.source.invalidate()
                    source.invalidate()
                    ended.increment()
                    loop.perform { loop.stop() }  // in the default mode, so that no nested run uses it up
                }
            }
            while ended.value < 8 { #expect(loop.runGuarded() == .stopped) }
            for thread in threads { try thread.join() }
            while performed.value < 1600 {
                loop.run(for: .zero)
                loop.run(mode: "inner", for: .zero)
            }
            nesting.invalidate()
        }
    }
}

/// Has its end called in a job of a loop. That is a plain function: from code that can suspend, the Swift runtime's
/// backtraces lead to the waiting task, not to what is below it on the stack.
private actor Ending {
    private nonisolated let loop: ThreadRunLoop
    private let note: @Sendable () -> Void

    init(on loop: ThreadRunLoop, _ note: @escaping @Sendable () -> Void) {
        self.loop = loop
        self.note = note
    }

    isolated deinit {
        note()
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
}

/// The kinds of callouts in a stack, innermost first. The optimizer may split a function in two frames of the same
/// name.
private func calloutNames(of symbols: [String]) -> [String] {
    let mark = "RUNLOOP_IS_CALLING_OUT_TO_"
    return symbols.reduce(into: []) { names, symbol in
        let words = symbol.split { !($0.isLetter || $0.isNumber || $0 == "_") }
        guard let word = words.first(where: { $0.hasPrefix(mark) }) else { return }
        let name = String(word.dropFirst(mark.count))
        if names.last != name { names.append(name) }
    }
}
