// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

/// What a forked child may do with its parent's memory in messages: nothing that the parent notices.
@Suite("memory in messages in forked children", .contract) struct MemoryForkTests {
    @Test("a child's use of its parent's pool is an error, and what it releases stays lent", arguments: [false, true])
    func inherited(lockIsHeld: Bool) async {
        await #expect(processExitsWith: .success) { [lockIsHeld = lockIsHeld as Bool] in
            try await withScratchDirectory { scratch in
                try await onNewThread {
                    let directory = try PortDirectory.open(path: scratch.path("ports"))
                    try InheritedMemory(Bench(transport: .socket, directory: directory, far: .none)).run(lockIsHeld)
                }
            }
        }
    }
}

/// A pool, memory of it on both sides of a connection, and what a forked child does with it.
private final class InheritedMemory: Sendable {
    private struct Memory {
        /// What was sent, as its sender has it.
        var sent: MessageMemory?
        /// The same, as its receiver has it.
        var received: MessageMemory?
        /// Memory of its own.
        var sealed: MessageMemory?
        /// What no message has.
        var unsent: MessageMemory?
    }

    private let bench: Bench
    private let pool = MemoryPool()
    private let port: MachPort
    private let right: SendRight
    private let memory = Mutex(Memory())

    init(_ bench: Bench) throws {
        self.bench = bench
        port = try bench.port()
        right = try bench.right(to: port)
    }

    private func send(_ value: UInt8) throws -> (sent: MessageMemory, received: MessageMemory) {
        var loan = try pool.loan(5000)
        loan.withBytes { $0.storeBytes(of: value, toByteOffset: 4999, as: UInt8.self) }
        let memory = loan.freeze()
        try right.send(MachMessage(memory: memory))
        return (memory, try #require(try port.next().memory.first))
    }

    /// Makes the memory, which nothing else retains: so the last release of each is the one of `memory`.
    private func fill() throws {
        let (sent, received) = try send(7)
        memory.withLock {
            $0 = Memory(
                sent: sent, received: received, sealed: try? LoanedMemory(sealable: 10).freeze(),
                unsent: try? pool.loan(5000).freeze())
        }
    }

    func run(_ lockIsHeld: Bool) throws {
        try fill()
        // The borrower has its page, and the lender has mapped it.
        _ = try send(8)
        #expect(pool.lentByteCount == 2 * 8192)
        let (locked, mayUnlock) = (Gate("the lock"), Gate("the fork"))
        let connection = try #require(right.destination as? RemotePort).reached()
        let holder = runOnThread {
            guard lockIsHeld else { return locked.open() }
            connection.state.withLock { _ in
                locked.open()
                mayUnlock.wait()
            }
        }
        locked.wait()
        let child = try forking { self.failures() }
        mayUnlock.open()
        try holder.join()
        #expect(exitStatus(of: child) == 0)
        // The parent's memory is as before, and is returned by the parent alone.
        #expect(pool.lentByteCount == 2 * 8192)
        #expect(lastBytes == [7, 7, 0])
        memory.withLock { $0.unsent = nil }
        #expect(pool.lentByteCount == 8192)
        memory.withLock { $0.sent = nil }
        #expect(pool.lentByteCount == 8192)
        memory.withLock { $0 = Memory() }
        #expect(pool.lentByteCount == 0)
    }

    private var lastBytes: [UInt8?] {
        memory.withLock { [$0.sent?.copy().last, $0.received?.copy().last, $0.sealed?.copy().last] }
    }

    /// The calls in a child that did not report that the pool is the parent's.
    private func failures() -> [String] {
        var failures: [String] = []
        func expect(_ name: String, _ body: () throws(PortError) -> Void) {
            let code = portError(body)?.code
            if code != .forkedProcess { failures.append("\(name): \(code.map { "\($0)" } ?? "no error")") }
        }
        expect("loan") { () throws(PortError) in _ = try pool.loan(1) }
        expect("loan within a limit") { () throws(PortError) in _ = try pool.loan(1 << 20, within: .zero) }
        expect("tryLoan") { () throws(PortError) in _ = try pool.tryLoan(1) }
        expect("loan of a task") { () throws(PortError) in
            let pool = self.pool
            try immediately { () async throws(PortError) in _ = try await pool.loan(1) }
        }
        pool.trim()
        if pool.lentByteCount != 0 || pool.reservedByteCount != 0 { failures.append("the pool has memory") }
        // It may read what it has inherited.
        if lastBytes != [7, 7, 0] { failures.append("it reads \(lastBytes)") }
        memory.withLock { $0 = Memory() }
        // A pool of its own is another one.
        guard let loan = try? MemoryPool().tryLoan(1) else { return failures + ["no loan of an own pool"] }
        if loan.freeze().copy() != [0] { failures.append("an own pool has other memory") }
        return failures
    }
}
