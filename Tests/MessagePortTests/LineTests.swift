// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization
import TestSupport
import Testing

@testable import MessagePort
@testable import RunLoopCore

/// Which fields share lines of memory: a message takes each line that both sides change from one processor to the other
/// and back. The allocator aligns objects to 16 bytes, and Swift can ask for no more: so 64 bytes are in one line or two, as
/// it happens. The list is in `Docs/Performance.md`.
@Suite("lines of memory that move between two sides", .leakCheck) struct LineTests {
    /// Where the reference count begins, which both sides change.
    private static let count = 8

    private func offset(of address: UnsafeRawPointer, in object: AnyObject) -> Int {
        address - UnsafeRawPointer(Unmanaged.passUnretained(object).toOpaque())
    }

    private func address<Value: ~Copyable>(of value: inout Value) -> UnsafeRawPointer {
        withUnsafeMutablePointer(to: &value) { UnsafeRawPointer($0) }
    }

    @Test("of a loop, what a ring reads and changes under the lock takes two lines with the reference count")
    func loop() async throws {
        try await onNewThread {
            let loop = ThreadRunLoop.current
            let state = loop.state.withLock { offset(of: address(of: &$0), in: loop) }
            let fields = [
                MemoryLayout<RunLoopState>.offset(of: \.runs), MemoryLayout<RunLoopState>.offset(of: \.modeSteps),
                MemoryLayout<RunLoopState>.offset(of: \.modes),
                MemoryLayout<RunLoopState>.offset(of: \.registrations.list),
            ]
            let known = fields.compactMap(\.self)
            #expect(known.count == fields.count)
            let last = try #require(known.max())
            #expect(state + last + MemoryLayout<Int>.size - Self.count <= 64)
            // What a waker needs beside that is before it.
            let object = Unmanaged.passUnretained(loop).toOpaque()
            let parker = Unmanaged.passUnretained(loop.parker).toOpaque()
            #expect(object.load(fromByteOffset: 16, as: UnsafeMutableRawPointer.self) == parker)
        }
    }

    @Test("of a source, what a ring reads and changes is beside the reference count")
    func source() {
        let source = RunLoopSource(readiness: { false }, perform: {})
        let state = source.state.withLock { offset(of: address(of: &$0), in: source) }
        // The mark follows the state, in the rest of its last word.
        #expect(state + MemoryLayout<RunLoopSource.State>.stride - Self.count <= 40)
    }

    @Test("of a mode's ready queue, what changes with each source is not behind what mostly stays")
    func readyQueue() throws {
        let heap = try #require(MemoryLayout<ReadyQueue>.offset(of: \.heap))
        let stamp = try #require(MemoryLayout<ReadyQueue>.offset(of: \.lastStamp))
        #expect(stamp + MemoryLayout<UInt64>.size <= heap && heap <= 64)
    }

    @Test("of a port, what its receiver changes is between the lock and the queue, apart from what senders only read")
    func port() {
        let port = MachPort().localPort
        let offsets = port.state.withLock { state in
            [
                offset(of: address(of: &state), in: port), offset(of: address(of: &state.ownership), in: port),
                offset(of: address(of: &state.mailbox), in: port), offset(of: address(of: &state.sources), in: port),
            ]
        }
        #expect(offsets[0] == offsets[1], "the ownership is first")
        #expect(offsets == offsets.sorted())
        // As long as two lines: three where the allocator has not aligned the object so.
        #expect(offsets[3] - Self.count <= 2 * 64)
    }
}
