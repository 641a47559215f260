// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Behaviours of sources that are no matter of traces: what is asked or observed is not in the language of scenarios.

import CoreFoundation
import Foundation
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(LeakCheck.withCoreFoundation, Settling()) struct SourceQuestionTests {
    @Test("CF 8, D10: two sources with equal routines and equal info are one")
    func equalSources() async throws {
        try await onNewThread {
            let loop: CFRunLoop = CFRunLoopGetCurrent()
            var context = CFRunLoopSourceContext()
            context.perform = { _ in }
            let sources = (0..<2).map { _ in CFRunLoopSourceCreate(nil, 0, &context) }
            CFRunLoopAddSource(loop, sources[0], Mode.default.name)
            #expect(CFRunLoopContainsSource(loop, sources[1], Mode.default.name))
            CFRunLoopSourceSignal(sources[1])
            #expect(runCoreFoundation(returns: true) == .timedOut)
            CFRunLoopSourceInvalidate(sources[0])
        }
        try await onNewThread {
            let sources = (0..<2).map { _ in RunLoopSource {} }
            ThreadRunLoop.current.add(sources[0])
            #expect(!ThreadRunLoop.current.contains(sources[1]))
            ThreadRunLoop.current.add(sources[1])
            sources[1].signal()
            #expect(ThreadRunLoop.current.run(for: .zero, returnAfterSourceHandled: true) == .handledSource)
        }
    }

    @Test("CF 15, D11: the loop reads eight bytes of the descriptor, so a packet socket loses its message")
    func lostPacket() async throws {
        let seen = Recorder<String>()
        try await onNewThread {
            let (reading, writing) = try Self.packetSockets()
            let source = ClosureSource(port: reading.rawValue) { seen.append(Self.receive(reading)) }
            source.add(to: CFRunLoopGetCurrent())
            _ = try sysWrite(writing.rawValue, Array("hello".utf8))
            #expect(runCoreFoundation(returns: true) == .handledSource)
            source.invalidate()
        }
        try await onNewThread {
            let (reading, writing) = try Self.packetSockets()
            let source = RunLoopSource(descriptor: reading.rawValue) { seen.append(Self.receive(reading)) }
            ThreadRunLoop.current.add(source)
            _ = try sysWrite(writing.rawValue, Array("hello".utf8))
            #expect(ThreadRunLoop.current.run(for: .zero, returnAfterSourceHandled: true) == .handledSource)
            source.invalidate()
        }
        #expect(seen.elements == ["nothing", "hello"])
    }

    private static func packetSockets() throws -> (SharedDescriptor, SharedDescriptor) {
        var ends: [CInt] = [-1, -1]
        let type = CInt(SOCK_SEQPACKET.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw SystemError(errno) }
        return (SharedDescriptor(owning: ends[0]), SharedDescriptor(owning: ends[1]))
    }

    private static func receive(_ socket: SharedDescriptor) -> String {
        let bytes = try? sysRead(socket.rawValue, capacity: 100)
        return bytes.map { String(decoding: $0, as: UTF8.self) } ?? "nothing"
    }

    @Test("CF 16, D11: a nested epoll set can be a port, and is reported once however much is left in it")
    func nestedEpoll() async throws {
        let performs = Recorder<String>()
        try await onNewThread {
            let nested = try NestedEpoll()
            let source = ClosureSource(port: nested.raw) { performs.append("cf") }
            source.add(to: CFRunLoopGetCurrent())
            try nested.put(3)
            for _ in 0..<5 { runCoreFoundation(returns: true) }
            source.invalidate()
        }
        #expect(performs.takeAll() == ["cf"])
        try await onNewThread {
            let nested = try NestedEpoll()
            let source = RunLoopSource(descriptor: nested.raw) {
                performs.append("package")
                nested.takeOne()
            }
            ThreadRunLoop.current.add(source)
            try nested.put(3)
            for _ in 0..<5 { ThreadRunLoop.current.run(for: .zero, returnAfterSourceHandled: true) }
            source.invalidate()
        }
        #expect(performs.takeAll() == ["package", "package", "package"])
    }

    @Test("CF 19, D12: of two sources with one descriptor in a mode, only the second is performed")
    func oneDescriptor() async throws {
        let performs = Recorder<String>()
        try await onNewThread {
            let event = try SharedEvent()
            let sources = ["first", "second"].map { name in ClosureSource(port: event.raw) { performs.append(name) } }
            for source in sources { source.add(to: CFRunLoopGetCurrent()) }
            for _ in 0..<3 {
                event.signal()
                runCoreFoundation(returns: true)
            }
            for source in sources { source.invalidate() }
        }
        #expect(performs.takeAll() == ["second", "second", "second"])
        try await onNewThread {
            let event = try SharedEvent()
            let sources = ["first", "second"].map { name in
                RunLoopSource(descriptor: event.raw) { performs.append(name) }
            }
            for source in sources { ThreadRunLoop.current.add(source) }
            event.signal()
            for _ in 0..<2 { ThreadRunLoop.current.run(for: .zero, returnAfterSourceHandled: true) }
            for source in sources { source.invalidate() }
        }
        #expect(performs.takeAll() == ["first", "second"])
    }

    @Test("CF 19, D14: a source whose descriptor is not open is added silently")
    func closedDescriptor() async throws {
        let closed: CInt = 1_000_000
        try await onNewThread {
            let source = ClosureSource(port: closed)
            source.add(to: CFRunLoopGetCurrent())
            #expect(source.isIn(CFRunLoopGetCurrent()))
            source.invalidate()
        }
        try await onNewThread {
            let source = RunLoopSource(descriptor: closed) {}
            #expect(throws: SystemError.self) { try ThreadRunLoop.current.tryAdd(source, to: .default) }
            #expect(!ThreadRunLoop.current.contains(source))
        }
    }

    @Test("CF 20, D13: the mode that finds a port ready consumes that for the other, whether or not it was handled")
    func twoModes() async throws {
        let performs = Recorder<String>()
        try await onNewThread {
            let event = try SharedEvent()
            let source = ClosureSource(port: event.raw) { performs.append("cf") }
            for mode in [Mode.alpha, .beta] { source.add(to: CFRunLoopGetCurrent(), mode) }
            event.signal()
            for mode in [Mode.alpha, .beta] { runCoreFoundation(mode) }
            source.invalidate()
        }
        #expect(performs.takeAll() == ["cf"])
        try await onNewThread {
            let event = try SharedEvent()
            let source = RunLoopSource(descriptor: event.raw) { performs.append("package") }
            for mode in ["alpha", "beta"] as [RunLoopMode] { ThreadRunLoop.current.add(source, to: mode) }
            event.signal()
            for mode in ["alpha", "beta"] as [RunLoopMode] { ThreadRunLoop.current.run(mode: mode, for: .zero) }
            source.invalidate()
        }
        #expect(performs.takeAll() == ["package", "package"])
    }
}

/// An eventfd that nothing reads but the loop.
private final class SharedEvent: Sendable {
    private let event: EventDescriptor

    init() throws { event = try EventDescriptor(.eventfd) }

    var raw: CInt { event.raw }

    func signal() { event.signal() }
}

/// An epoll set with a pipe in it.
private final class NestedEpoll: Sendable {
    private let set: EpollSet
    private let pipe: TestPipe

    init() throws {
        pipe = try TestPipe(isBlocking: false)
        set = try EpollSet()
        try set.add(pipe.reading.rawValue, .readable, key: 1)
    }

    var raw: CInt { self.set.raw }

    func put(_ count: Int) throws {
        try pipe.put(Array(repeating: 7, count: count))
    }

    func takeOne() {
        _ = try? pipe.take()
    }
}
