// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(.leakCheck) struct WatchTests {
    @Test("a descriptor can be set, replaced and cleared while the source is in modes")
    func replace() async throws {
        let seen = Recorder<String>()
        try await onLoop { loop in
            let (one, two) = (try TestPipe(isBlocking: false), try TestPipe(isBlocking: false))
            let source = RunLoopSource(readiness: { false }) {
                for (name, pipe) in [("one", one), ("two", two)] where (try? pipe.take()) ?? nil != nil {
                    seen.append(name)
                }
            }
            loop.add(source)
            loop.add(source, to: "other")
            try source.watch(one.reading.rawValue)
            try source.watch(one.reading.rawValue)
            try one.put()
            #expect(loop.runGuarded(returnAfterSourceHandled: true) == .handledSource)
            try source.watch(two.reading.rawValue)
            try one.put()
            #expect(loop.run(for: .zero, returnAfterSourceHandled: true) == .timedOut)
            try two.put()
            #expect(loop.runGuarded(mode: "other", returnAfterSourceHandled: true) == .handledSource)
            try source.watch(nil)
            try two.put()
            #expect(loop.run(for: .zero, returnAfterSourceHandled: true) == .timedOut)
            source.invalidate()
            try source.watch(two.reading.rawValue)
        }
        #expect(seen.elements == ["one", "one", "two"])
    }

    @Test("what the kernel refuses is reported, and everything stays as it was")
    func errors() async throws {
        try await onLoop { loop in
            let pipe = try TestPipe(isBlocking: false)
            let file = try sysOpen(#filePath, .reading)
            let source = RunLoopSource(readiness: { false }) { loop.stop() }
            #expect(throws: SystemError(EBADF)) { try source.watch(99_999) }
            #expect(throws: SystemError(EPERM)) { try source.watch(file.raw) }
            loop.add(source)
            loop.add(source, to: "other")
            try source.watch(pipe.reading.rawValue)
            #expect(throws: SystemError(EBADF)) { try source.watch(99_999) }
            #expect(throws: SystemError(EPERM)) { try source.watch(file.raw) }
            try pipe.put()
            #expect(loop.runGuarded() == .stopped)
            #expect(loop.runGuarded(mode: "other") == .stopped)
        }
    }

    #if PORT_FAULTS
    @Test("no descriptor left for the mode's set is an error of watch, and changes nothing")
    func exhausted() async throws {
        try await onLoop { loop in
            let pipe = try TestPipe(isBlocking: false)
            let source = RunLoopSource(readiness: { false }) { loop.stop() }
            loop.add(source)
            for call in [SystemCall.eventfd, .epoll_create] {
                _ = SystemCallFaults.with([.init(call, .fail(EMFILE))]) {
                    #expect(throws: SystemError(EMFILE)) { try source.watch(pipe.reading.rawValue) }
                }
            }
            try pipe.put()
            #expect(loop.run(for: .zero) == .timedOut)
            loop.add(source, to: "other")
            try source.watch(pipe.reading.rawValue)
            _ = SystemCallFaults.with([.init(.epoll_ctl, .fail(ENOSPC), skipping: 1)]) {
                #expect(throws: SystemError(ENOSPC)) { try source.watch(pipe.writing.rawValue) }
            }
            #expect(loop.runGuarded() == .stopped)
            #expect(loop.runGuarded(mode: "other") == .stopped)
        }
    }

    @Test("F-A2: a source that is in no loop is set without a descriptor left, and served where nothing else is needed")
    func unscheduledAtLimit() async throws {
        try await onLoop { loop in
            let (other, pipe) = (try TestPipe(isBlocking: false), try TestPipe(isBlocking: false))
            loop.add(RunLoopSource(descriptor: other.reading.rawValue) {})
            loop.run(for: .zero)  // what it needs to wait for descriptors
            let source = RunLoopSource(readiness: { false }) { loop.stop() }
            let rules = [SystemCall.epoll_create, .eventfd].map {
                SystemCallFaults.Rule($0, .fail(EMFILE), times: .max)
            }
            try pipe.put()
            _ = try SystemCallFaults.with(rules) {
                try source.watch(pipe.reading.rawValue)
                loop.add(source)
                #expect(loop.runGuarded() == .stopped)
            }
            source.invalidate()
        }
    }

    @Test(
        "F-A2: a source that is added while the kernel has nothing left to watch with is served when it has, in all modes",
        arguments: [(SystemCall.eventfd, EMFILE), (.epoll_create, ENFILE), (.epoll_ctl, ENOSPC)])
    func addedAtLimit(_ call: SystemCall, _ code: CInt) async {
        await #expect(processExitsWith: .success) { [call = call.rawValue as String, code = code as CInt] in
            let call = try #require(SystemCall(rawValue: call))
            try await onLoop { loop in
                let (pipe, more) = (try TestPipe(isBlocking: false), try TestPipe(isBlocking: false))
                try pipe.put()
                try more.put()
                let (_, hits) = SystemCallFaults.with([.init(call, .fail(code), times: 4)]) {
                    loop.add(RunLoopSource(descriptor: pipe.reading.rawValue) { loop.stop() })
                    #expect(loop.runGuarded() == .stopped)
                }
                _ = try pipe.take()
                #expect(hits == 4)
                _ = SystemCallFaults.with([.init(.epoll_create, .fail(code), times: 4)]) {
                    loop.add(RunLoopSource(descriptor: more.reading.rawValue) { loop.stop() }, to: .common)
                    loop.addCommonMode("later")
                    #expect(loop.runGuarded(mode: "later") == .stopped)
                }
            }
        }
    }

    @Test("a source that waits to be watched in a loop that ends is watched in the next one, and in another beside it")
    func watchedInAnother() async throws {
        let pipe = try TestPipe(isBlocking: false)
        try pipe.put()
        let source = RunLoopSource(descriptor: pipe.reading.rawValue) { ThreadRunLoop.current.stop() }
        let short = SystemCallFaults.Rule(.epoll_create, .fail(EMFILE))
        try await onLoop { loop in
            let hits = SystemCallFaults.with([short]) { loop.add(source) }.hits
            #expect(hits == 1)
            // It ends without having run.
        }
        try await onLoop { loop in
            let hits = SystemCallFaults.with([short]) { loop.add(source) }.hits
            #expect(hits == 1)
            #expect(loop.runGuarded() == .stopped)
            let beside = runOnThread {
                let hits = SystemCallFaults.with([short]) { ThreadRunLoop.current.add(source) }.hits
                #expect(hits == 1)
                #expect(ThreadRunLoop.current.runGuarded() == .stopped)
            }
            try beside.join()
        }
        source.invalidate()
    }
    #endif

    @Test("a descriptor follows its source into modes that become common")
    func common() async throws {
        try await onLoop { loop in
            let pipe = try TestPipe(isBlocking: false)
            loop.add(RunLoopSource(descriptor: pipe.reading.rawValue) { loop.stop() }, to: .common)
            loop.addCommonMode("later")
            try pipe.put()
            #expect(loop.runGuarded(mode: "later") == .stopped)
        }
    }

    @Test("S14: watch, add and remove from several threads while the loop runs")
    func storm() async throws {
        try await onLoop { loop in
            let (one, two) = (try TestPipe(isBlocking: false), try TestPipe(isBlocking: false))
            let source = RunLoopSource(readiness: { false }) {
                _ = try? one.take(100)
                _ = try? two.take(100)
            }
            loop.add(idleSource())
            let ended = Counter("threads")
            let threads = (0..<4).map { number in
                runOnThread {
                    for round in 0..<300 {
                        switch (number + round) % 4 {
                        case 0: try source.watch(round % 8 == 0 ? one.reading.rawValue : two.reading.rawValue)
                        case 1: loop.add(source, to: round % 3 == 0 ? .common : .default)
                        case 2: loop.remove(source, from: round % 3 == 0 ? .common : .default)
                        default: try (round % 2 == 0 ? one : two).put()
                        }
                    }
                    if ended.increment() == 4 { loop.stop() }
                }
            }
            #expect(loop.runGuarded() == .stopped)
            for thread in threads { try thread.join() }
            source.invalidate()
        }
    }
}
