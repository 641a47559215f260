// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization
import TestSupport
import Testing

@testable import RunLoopCore

@Suite struct RegistrationTests {
    private func makeSource() -> RunLoopSource {
        RunLoopSource(readiness: { false }, perform: {})
    }

    @Test("a source has a registration in each mode that it is in, and each is found from any of them")
    func severalModes() {
        var registrations = RegistrationTable()
        let (source, other) = (makeSource(), makeSource())
        let numbers = (0..<5).map { mode in
            _ = registrations.allocate(for: other, in: mode)
            return registrations.allocate(for: source, in: mode)
        }
        #expect(registrations.modes(of: source.id).sorted() == Array(0..<5))
        for (mode, number) in numbers.enumerated() {
            #expect(registrations.registration(of: source.id, in: mode) == number)
            #expect(registrations.registration(of: source, near: number) == number)
            #expect(registrations.registration(of: source, in: mode, near: number) == number)
            // A cached index that is another source's, of another mode, or of no source.
            for staleIndex in [number - 1, numbers[(mode + 1) % 5], 1000] {
                #expect(registrations.registration(of: source, in: mode, near: staleIndex) == number)
            }
        }
        for mode in [0, 3, 4] { registrations.deallocate(numbers[mode]) }
        #expect(registrations.modes(of: source.id).sorted() == [1, 2])
        #expect(registrations.registration(of: source.id, in: 3) == nil)
        let left = registrations.registration(of: source, near: numbers[3])
        #expect(left == numbers[1] || left == numbers[2])
        for mode in [1, 2] { registrations.deallocate(numbers[mode]) }
        #expect(
            registrations.registration(of: source, near: numbers[1]) == nil && registrations.modes(of: source.id) == [])
        #expect(registrations.modes(of: other.id).sorted() == Array(0..<5))
    }

    @Test("a free registration is given to the next source, as if it were new")
    func reuse() {
        var registrations = RegistrationTable()
        let (first, second, third) = (makeSource(), makeSource(), makeSource())
        let number = registrations.allocate(for: first, in: 0)
        _ = registrations.allocate(for: second, in: 0)
        registrations.list[number].lastRound = 7
        registrations.setDescriptor(DescriptorState(key: 1, raw: 5, report: 3), of: number)
        registrations.deallocate(number)
        #expect(registrations.allocate(for: third, in: 1) == number)
        #expect(registrations.list[number].lastRound == 0 && !registrations.list[number].isListed)
        #expect(registrations.descriptor(of: number) == nil)
        #expect(
            registrations.registration(of: third, near: number) == number
                && registrations.registration(of: first, near: number) == nil)
        registrations.setDescriptor(DescriptorState(key: 2, raw: 6), of: number)
        #expect(registrations.descriptor(of: number)?.key == 2 && registrations.descriptor(of: number)?.report == nil)
    }

    @Test("many sources that come and go leave no registration, and keep none alive", .seeded)
    func manyComeAndGo() {
        var random = Seed.generator(stream: 1)
        var registrations = RegistrationTable()
        var model: [(source: RunLoopSource, mode: Int, number: RegistrationIndex)] = []
        for _ in 0..<20_000 {
            if model.isEmpty || model.count < 100 && Bool.random(using: &random) {
                let old = model.randomElement(using: &random)?.source
                let source = Bool.random(using: &random) ? makeSource() : old ?? makeSource()
                let modes = (0..<4).filter { registrations.registration(of: source.id, in: $0) == nil }
                guard let mode = modes.randomElement(using: &random) else { continue }
                let number = registrations.allocate(for: source, in: mode)
                if mode == 2 {
                    registrations.setDescriptor(DescriptorState(key: UInt64(number + 1), raw: 0), of: number)
                }
                model.append((source, mode, number))
            } else {
                registrations.deallocate(model.remove(at: .random(in: model.indices, using: &random)).number)
            }
            #expect(registrations.count == model.count && registrations.list.count <= 100)
            guard let some = model.randomElement(using: &random) else { continue }
            #expect(registrations.registration(of: some.source.id, in: some.mode) == some.number)
            #expect(registrations.descriptor(of: some.number)?.key == (some.mode == 2 ? UInt64(some.number + 1) : nil))
        }
        for some in model { registrations.deallocate(some.number) }
        #expect(registrations.count == 0 && registrations.list.isEmpty)
        var last = makeSource()
        registrations.deallocate(registrations.allocate(for: last, in: 0))
        let isAlone = isKnownUniquelyReferenced(&last)
        #expect(isAlone)
    }
}

@Suite(.leakCheck) struct RegisteredSourceTests {
    @Test("a signal that finds its source's slot given to another source reaches its own, or none")
    func signalOfReusedSlot() async throws {
        try await onLoop { loop in
            let performed = LoopBound<[Int]>([])
            let boxes = (0..<3).map { number in Mailbox { _ in performed.value.append(number) } }
            let (first, second, third) = (boxes[0], boxes[1], boxes[2])
            loop.add(first.source)
            loop.add(third.source)
            loop.run(for: .zero)
            let old = first.source.state.withLock { $0.registration }
            loop.remove(first.source)
            loop.add(second.source)
            #expect(second.source.state.withLock { $0.registration } == old)
            loop.run(for: .zero)
            // The signal read the source's slot earlier, and arrives only now.
            for mailbox in boxes { mailbox.putSilently(1) }
            loop.noteReadiness(of: first.source, near: old)
            loop.run(for: .zero)
            #expect(performed.value == [])
            loop.add(first.source)
            loop.run(for: .zero)
            #expect(performed.value == [0])
            first.putSilently(2)
            loop.noteReadiness(of: first.source, near: old)
            loop.run(for: .zero)
            #expect(performed.value == [0, 0])
            for mailbox in boxes { mailbox.source.invalidate() }
        }
    }

    @Test("a source in several modes signals all of them, in whichever order it was added, whichever it has left")
    func severalModes() async throws {
        try await onLoop { loop in
            let performed = LoopBound(0)
            let mailbox = Mailbox { _ in performed.value += 1 }
            let modes: [RunLoopMode] = [.default, "a", "b", "c"]
            for mode in modes {
                loop.add(mailbox.source, to: mode)
                loop.add(idleSource(), to: mode)
            }
            /// Signals for each mode, and runs in it: what is not handled there is handled by a mode in which the
            /// source is.
            func check(_ those: [RunLoopMode]) {
                for mode in modes {
                    performed.value = 0
                    mailbox.put(1)
                    loop.run(mode: mode, for: .zero)
                    #expect(performed.value == (those.contains(mode) ? 1 : 0))
                    loop.run(mode: those[0], for: .zero)
                    #expect(performed.value == 1)
                }
            }
            check(modes)
            loop.remove(mailbox.source)
            check(["a", "b", "c"])
            loop.remove(mailbox.source, from: "b")
            check(["a", "c"])
            loop.add(mailbox.source)
            check([.default, "a", "c"])
            mailbox.source.invalidate()
        }
    }

    @Test("a source that left its mode during its check is not performed; one that came back, in another slot, is")
    func leavesWhileAsked() async throws {
        for comesBack in [false, true] {
            try await onLoop { loop in
                let performed = LoopBound(0)
                let holder = LoopBound<RunLoopSource?>(nil)
                let other = RunLoopSource(readiness: { false }, perform: {})
                let source = RunLoopSource(
                    readiness: {
                        guard performed.value == 0, let source = holder.value, loop.contains(source) else {
                            return false
                        }
                        loop.remove(source)
                        loop.add(other)
                        if comesBack { loop.add(source) }
                        return true
                    },
                    perform: { performed.value += 1 })
                holder.value = source
                loop.add(source)
                loop.run(for: .zero)
                #expect(performed.value == (comesBack ? 1 : 0))
                holder.value = nil
                source.invalidate()
                other.invalidate()
            }
        }
    }

    @Test("an observer that comes during a source's check is notified of the wait's end before the perform")
    func observerWhileAsked() async throws {
        try await onLoop { loop in
            let events = LoopBound<[String]>([])
            let source = RunLoopSource(
                readiness: {
                    if !events.value.isEmpty { return false }
                    events.value.append("asked")
                    loop.add(RunLoopObserver(activities: .afterWaiting) { _, _ in events.value.append("notified") })
                    return true
                },
                perform: { events.value.append("performed") })
            loop.add(source)
            loop.run(for: .milliseconds(1))
            #expect(events.value.prefix(3) == ["asked", "notified", "performed"])
            source.invalidate()
        }
    }

    @Test("10,000 sources that come and go in a loop leave no registration")
    func comeAndGo() async throws {
        try await onLoop { loop in
            func makeSource() -> RunLoopSource { RunLoopSource(readiness: { false }, perform: {}) }
            let last = makeSource()
            loop.add(last)
            for _ in 0..<100 {
                let sources = (0..<100).map { _ in makeSource() }
                for source in sources { loop.add(source, to: .common) }
                loop.run(for: .zero)
                for source in sources.shuffled() { source.invalidate() }
            }
            #expect(loop.state.withLock { $0.registrations.count } == 1)
            #expect(loop.state.withLock { $0.registrations.list.count } <= 101)
            last.invalidate()
        }
    }
}
