// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import PortSystem
@testable import RunLoopCore
import TestSupport
import Testing

@Suite(.leakCheck) struct DescriptorSourceTests {
    @Test(
        "S5: a descriptor wakes the loop, and its source is performed as long as it is readable",
        arguments: TestDescriptor.Kind.allCases)
    func levels(_ kind: TestDescriptor.Kind) async throws {
        try await onLoop { loop in
            let descriptor = try TestDescriptor(kind)
            let performed = Counter("performs")
            let source = RunLoopSource(descriptor: descriptor.raw) {
                if performed.increment() < 3 { return }  // leaves it there
                try? descriptor.take()
                loop.stop()
            }
            loop.add(source)
            let asleep = Gate("the sleep")
            loop.add(RunLoopObserver(activities: .beforeWaiting) { _, _ in asleep.open() })
            let writer = runOnThread {
                asleep.wait()
                try descriptor.put()
            }
            #expect(loop.runGuarded() == .stopped)
            #expect(loop.run(for: .milliseconds(1)) == .timedOut)
            #expect(performed.value == 3)
            try writer.join()
            source.invalidate()
        }
    }

    @Test("the loop reads nothing from a descriptor")
    func unread() async throws {
        try await onLoop { loop in
            let pipe = try TestPipe(isBlocking: false)
            loop.add(RunLoopSource(descriptor: pipe.reading.rawValue) {})
            try pipe.put(Array(1...20))
            #expect(loop.runGuarded(returnAfterSourceHandled: true) == .handledSource)
            let bytes = try pipe.take(64)
            #expect(bytes == Array(1...20))
        }
    }

    @Test("a descriptor at its end counts as ready")
    func hangUp() async throws {
        try await onLoop { loop in
            var ends: [CInt] = [-1, -1]
            #expect(pipe(&ends) == 0)
            let reading = SharedDescriptor(owning: ends[0])
            loop.add(RunLoopSource(descriptor: reading.rawValue) { loop.stop() })
            sysClose(ends[1])
            #expect(loop.runGuarded() == .stopped)
        }
    }

    @Test("two sources may watch one descriptor, in one mode and in several")
    func shared() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            let pipe = try TestPipe(isBlocking: false)
            let sources = ["one", "two"].map { name in
                RunLoopSource(descriptor: pipe.reading.rawValue) { trace.append(name) }
            }
            for source in sources {
                loop.add(source)
                loop.add(source, to: "other")
            }
            try pipe.put()
            for _ in sources { loop.runGuarded(returnAfterSourceHandled: true) }
            #expect(trace.takeAll() == ["one", "two"])
            sources[0].invalidate()
            loop.runGuarded(returnAfterSourceHandled: true)
            loop.runGuarded(mode: "other", returnAfterSourceHandled: true)
            #expect(trace.elements == ["two", "two"])
        }
    }

    @Test("a source that is added again while it is being removed watches its descriptor in every mode")
    func addedWhileRemoved() async throws {
        try await onLoop { loop in
            let pipe = try TestPipe(isBlocking: false)
            let (added, performed) = (Counter("additions"), Counter("performs"))
            loop.addCommonMode("other")
            let back = Recorder<RunLoopSource>()
            let source = RunLoopSource(
                order: 0, readiness: { false },
                // It has left both modes, and was notified of the first one alone.
                cancel: { loop, _ in
                    guard let source = back.elements.first, added.increment() == 1 else { return }
                    loop.add(source, to: .common)
                },
                perform: { performed.increment() })
            try source.watch(pipe.reading.rawValue)
            loop.add(source, to: .common)
            back.append(source)
            loop.remove(source, from: .common)
            #expect(loop.contains(source, in: .common))
            try pipe.put()
            for mode in [RunLoopMode.default, "other"] {
                let before = performed.value
                #expect(loop.runGuarded(mode: mode, returnAfterSourceHandled: true) == .handledSource)
                #expect(performed.value == before + 1)
            }
            _ = back.takeAll()
            source.invalidate()
        }
    }

    @Test("a report is checked again when another handler ran since: a drained descriptor is not performed")
    func drained() async throws {
        try await onLoop { loop in
            let pipes = [try TestPipe(isBlocking: false), try TestPipe(isBlocking: false)]
            let performed = Counter("performs")
            for pipe in pipes {
                loop.add(
                    RunLoopSource(descriptor: pipe.reading.rawValue) {
                        performed.increment()
                        for pipe in pipes { _ = try? pipe.take() }
                    })
                try pipe.put()
            }
            #expect(loop.run(for: .milliseconds(5)) == .timedOut)
            #expect(performed.value == 1)
        }
    }

    @Test("more ready descriptors than one wait reports are all served")
    func many() async throws {
        try await onLoop { loop in
            let pipes = try (0..<100).map { _ in try TestPipe(isBlocking: false) }
            let served = Recorder<Int>()
            for (number, pipe) in pipes.enumerated() {
                loop.add(
                    RunLoopSource(descriptor: pipe.reading.rawValue) {
                        _ = try? pipe.take()
                        served.append(number)
                        if served.count == 100 { loop.stop() }
                    })
                try pipe.put()
            }
            #expect(loop.runGuarded() == .stopped)
            #expect(Set(served.elements).count == 100)
        }
    }

    @Test("a source whose descriptor was closed is silent, and does not keep the loop busy")
    func closed() async throws {
        try await onLoop { loop in
            var ends: [CInt] = [-1, -1]
            #expect(pipe(&ends) == 0)
            let source = RunLoopSource(descriptor: ends[0]) { Issue.record("performed") }
            loop.add(source)
            sysClose(ends[0])
            #expect(loop.run(for: .milliseconds(5)) == .timedOut)
            #expect(loop.passCount == 1)
            source.invalidate()
            sysClose(ends[1])
        }
    }

    @Test(
        "files that were closed before their sources were removed, but live on, do not keep the loop busy",
        arguments: [1, 2, 70])
    func zombies(_ count: Int) async throws {
        try await onLoop { loop in
            loop.waitStrategy = .blocking  // one that spins polls the kernel every 5 µs
            loop.add(idleSource())
            var living: [(reading: FileHandle, writing: SharedDescriptor)] = []
            for _ in 0..<count {
                var ends: [CInt] = [-1, -1]
                #expect(pipe(&ends) == 0)
                living.append((FileHandle(fileDescriptor: dup(ends[0])), SharedDescriptor(owning: ends[1])))
                let source = RunLoopSource(descriptor: ends[0]) { Issue.record("performed") }
                loop.add(source)
                sysClose(ends[0])
                loop.remove(source)
            }
            for (_, writing) in living { _ = try sysWrite(writing.rawValue, [1]) }
            #expect(loop.run(for: .milliseconds(20)) == .timedOut)
            #expect(loop.kernelWaitCount < 20)
            let other = RunLoopSource(descriptor: living[0].reading.fileDescriptor) { loop.stop() }
            loop.add(other)
            #expect(loop.runGuarded() == .stopped)
            other.invalidate()
            for (reading, _) in living { try reading.close() }
        }
    }

    #if PORT_FAULTS
    @Test(
        "F-B4: a loop that cannot rebuild its set because descriptors have run out goes on, and rebuilds it later")
    func zombieAtLimit() async {
        await #expect(processExitsWith: .success) {
            try await onLoop { loop in
                loop.waitStrategy = .blocking
                loop.add(idleSource())
                var ends: [CInt] = [-1, -1]
                #expect(pipe(&ends) == 0)
                let living = FileHandle(fileDescriptor: dup(ends[0]))
                let source = RunLoopSource(descriptor: ends[0]) { Issue.record("performed") }
                loop.add(source)
                sysClose(ends[0])
                loop.remove(source)
                _ = try sysWrite(ends[1], [1])
                // How often it is tried in a time depends on what else the machine has to do.
                let (_, hits) = SystemCallFaults.with([.init(.epoll_create, .fail(EMFILE), times: .max)]) {
                    #expect(loop.run(for: .milliseconds(20)) == .timedOut)
                }
                // A millisecond passes between two tries.
                #expect(hits > 0 && hits <= 21)
                let before = loop.kernelWaitCount
                #expect(loop.run(for: .milliseconds(20)) == .timedOut)
                #expect(loop.kernelWaitCount < before + 20)
                try living.close()
            }
        }
    }

    @Test(
        "F-B4: many reports that came too late end no loop when descriptors, or watches, have run out",
        arguments: [(SystemCall.epoll_create, EMFILE), (.epoll_ctl, ENOSPC)])
    func staleAtLimit(_ call: SystemCall, _ code: CInt) async {
        await #expect(processExitsWith: .success) { [call = call.rawValue as String, code = code as CInt] in
            let call = try #require(SystemCall(rawValue: call))
            try await onNewThread {
                let set = try DescriptorSet(wakeEvent: Shared(EventDescriptor()))
                let (last, lastSource) = (try TestPipe(isBlocking: false), idleSource())
                _ = try set.join(last.reading.rawValue, lastSource)
                for round in 0..<8 {
                    let pipes = try (0..<60).map { _ in try TestPipe(isBlocking: false) }
                    let registrations = try pipes.map { pipe in
                        let source = RunLoopSource(readiness: { false }) {}
                        try pipe.put()
                        return (try set.join(pipe.reading.rawValue, source).registration, source)
                    }
                    // All end when the kernel has reported them, and the first of them is checked.
                    func end() { for (registration, source) in registrations { registration.end(for: source) } }
                    // In the end there is something left again.
                    let times = round < 7 ? Int.max : 0
                    // They leave, the doorbell joins the new set, and what is left does not.
                    let skipping = call == .epoll_ctl ? 61 : 0
                    let rule = SystemCallFaults.Rule(call, .fail(code), times: times, skipping: skipping)
                    _ = SystemCallFaults.with([rule]) { set.wait(until: .distantPast) { _ in end() } }
                    withExtendedLifetime(pipes) {}
                }
                var count = 0
                try last.put()
                set.wait(until: .distantPast) { count += $0.contains(lastSource) ? 1 : 0 }
                #expect(count == 1)
            }
        }
    }
    #endif

    @Test("a closed descriptor's number may be a regular file's when its source is invalidated")
    func reusedNumber() async throws {
        try await onLoop { loop in
            let pipe = try TestPipe(isBlocking: false)
            let source = RunLoopSource(descriptor: pipe.reading.rawValue) { Issue.record("performed") }
            loop.add(source)
            let file = try sysOpen(#filePath, .reading)
            #expect(dup2(file.raw, pipe.reading.rawValue) == pipe.reading.rawValue)
            source.invalidate()
            #expect(loop.run(for: .zero) == .finished)
        }
    }

    @Test("a loop that sleeps without descriptors is woken by one that is added meanwhile")
    func addedDuringSleep() async throws {
        try await onLoop { loop in
            let pipe = try TestPipe(isBlocking: false)
            loop.add(idleSource())
            try pipe.put()
            let asleep = Gate("the sleep")
            loop.add(RunLoopObserver(activities: .beforeWaiting) { _, _ in asleep.open() })
            let adder = runOnThread {
                asleep.wait()
                loop.add(RunLoopSource(descriptor: pipe.reading.rawValue) { loop.stop() })
            }
            #expect(loop.runGuarded() == .stopped)
            try adder.join()
        }
    }
}
