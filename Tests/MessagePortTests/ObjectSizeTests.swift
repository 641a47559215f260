// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import Testing

@testable import MessagePort
@testable import RunLoopCore

/// The allocator's objects have 8 bytes more than a multiple of 16: a field too many costs each port 16 bytes.
@Suite struct ObjectSizeTests {
    @Test("a port, its core, its source and a right have the sizes that the page on performance says")
    func port() throws {
        let room = try makeRoomTeller()
        let ports = (0..<32).map { _ in MachPort() }
        let sources = try ports.map { port throws in try port.runLoopSource() }
        let presences = try ports.map { port throws in try #require(port.localPort.makePresence()) }
        // Now and then the allocator rounds up: 16 bytes that would be left over.
        #expect(try #require(ports.map(room).min()) <= 80 - 8)
        #expect(try #require(ports.map { room($0.localPort) }.min()) <= 208 - 8)
        #expect(try #require(sources.map(room).min()) <= 112 - 8)
        #expect(try #require(presences.map(room).min()) <= 32 - 8)
    }

    @Test("the loops of a source, the sources of a port, and its handlers need no room to distinguish few from many")
    func lists() {
        #expect(MemoryLayout<LoopMembership>.size == MemoryLayout<Int>.size)
        #expect(MemoryLayout<SourceList>.size == MemoryLayout<Int>.size)
        #expect(MemoryLayout<ModeList>.size == MemoryLayout<Int>.size)
        #expect(MemoryLayout<ActiveHandlers>.size == MemoryLayout<ActiveHandlers.Handler>.size)
    }

    /// What reports how much room the allocator has given an object: a function that Glibc's module leaves out.
    private func makeRoomTeller() throws -> (AnyObject) -> Int {
        typealias Function = @convention(c) (UnsafeMutableRawPointer?) -> Int
        let symbol = try #require(dlsym(nil, "malloc_usable_size"))
        let function = unsafeBitCast(symbol, to: Function.self)
        return { function(Unmanaged.passUnretained($0).toOpaque()) }
    }
}
