// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#if PORT_FAULTS

import ContractServices
import Glibc
@testable import MessagePort
import PortSystem
@testable import RunLoopCore
import TestSupport
import Testing

/// What a system refuses that has no memory files, or too little memory, on either side of a loan.
@Suite("forced faults of memory in messages", .contract) struct MemoryFaultTests {
    typealias Rule = SystemCallFaults.Rule

    /// A result of one call.
    struct Fault: Sendable, CustomTestStringConvertible {
        let call: SystemCall
        let code: CInt
        var skipping = 0
        var testDescription: String { "\(call) \(SystemError(code))" }

        init(_ call: SystemCall, _ code: CInt, skipping: Int = 0) {
            (self.call, self.code, self.skipping) = (call, code, skipping)
        }

        var rule: Rule { Rule(call, .fail(code), skipping: skipping) }
        /// For all calls from now on.
        var permanent: Rule { Rule(call, .fail(code), times: .max, skipping: skipping) }
    }

    /// A system without memory files, or without what they need: a filter, or an old kernel.
    static let refusals = [
        Fault(.memfd_create, ENOSYS), Fault(.memfd_create, EPERM), Fault(.memfd_create, EACCES),
        Fault(.fcntl, EINVAL), Fault(.fcntl, EPERM), Fault(.fallocate, EOPNOTSUPP), Fault(.fallocate, EFBIG),
        Fault(.ftruncate, EFBIG), Fault(.mmap, EPERM), Fault(.mmap, ENODEV),
    ]

    /// What it lacks now and may have later.
    static let shortages = [
        Fault(.memfd_create, EMFILE), Fault(.memfd_create, ENFILE), Fault(.memfd_create, ENOMEM),
        Fault(.ftruncate, ENOMEM), Fault(.fallocate, ENOSPC), Fault(.fallocate, ENOMEM), Fault(.mmap, ENOMEM),
    ]

    /// Memory whose bytes are a number.
    private func filled(_ loan: consuming LoanedMemory, _ value: UInt8) -> MessageMemory {
        var loan = loan
        let count = loan.count
        loan.withBytes { bytes in
            for index in 0..<count { bytes.storeBytes(of: value, toByteOffset: index, as: UInt8.self) }
        }
        return loan.freeze()
    }

    @Test("where the system refuses memory files, bytes are copied, and user code is the same", arguments: refusals)
    func refused(_ fault: Fault) async throws {
        try await onBench(over: .socket) { bench in
            let (pool, port) = (MemoryPool(), try bench.port())
            let right = try bench.right(to: port)
            let (_, hits) = try SystemCallFaults.with([fault.permanent]) {
                try right.send(MachMessage(memory: filled(try pool.loan(70_000), 7)))
                try right.send(MachMessage(memory: filled(try LoanedMemory(sealable: 5000), 8)))
            }
            #expect(hits > 0)
            #expect(pool.lentByteCount == 0 && pool.reservedByteCount > 0)
            for (count, value): (Int, UInt8) in [(70_000, 7), (5000, 8)] {
                let memory = try #require(try port.next().memory.first)
                #expect(memory.grade == .copied && memory.copy() == [UInt8](repeating: value, count: count))
            }
            // The pool uses what it has.
            try right.send(MachMessage(memory: filled(try pool.loan(70_000), 9)))
            #expect(try port.next().memory.first?.copy().last == 9)
            pool.trim()
            #expect(pool.reservedByteCount == 0)
        }
    }

    @Test(
        "a system without a descriptor or memory for a loan: the loan fails with its code, the next one does not",
        arguments: shortages)
    func shortage(_ fault: Fault) async throws {
        try await onBench(over: .socket) { bench in
            let (pool, port) = (MemoryPool(), try bench.port())
            let right = try bench.right(to: port)
            let isLimit = SystemError(fault.code).isDescriptorLimit
            expectNoNewDescriptors {
                let (errors, hits) = SystemCallFaults.with([fault.permanent]) {
                    [
                        portError { () throws(PortError) in _ = try pool.tryLoan(1) },
                        portError { () throws(PortError) in _ = try pool.loan(5 << 20) },
                        portError { () throws(PortError) in _ = try LoanedMemory(sealable: 1) },
                        portError { () throws(PortError) in
                            try immediately { () async throws(PortError) in _ = try await pool.loan(1) }
                        },
                    ]
                }
                #expect(isLimit ? hits == 4 : hits > 4)
                for error in errors { #expect(error?.code == (isLimit ? .descriptorLimit : .systemCallFailed)) }
                if !isLimit { #expect(errors.allSatisfy { $0?.systemError == SystemError(fault.code) }) }
                #expect(pool.reservedByteCount == 0 && pool.lentByteCount == 0)
            }
            try right.send(MachMessage(memory: filled(try pool.loan(70_000), 7)))
            let memory = try #require(try port.next().memory.first)
            #expect(memory.grade == .shared && memory.copy().last == 7)
        }
    }

    @Test(
        "where the system has no memory for many slots, a pool makes half as many, and half of those",
        arguments: shortages.filter { !SystemError($0.code).isDescriptorLimit })
    func fewerSlots(_ fault: Fault) throws {
        let pool = MemoryPool()
        let (loan, hits) = try SystemCallFaults.with([fault.rule, fault.rule]) { filled(try pool.loan(4096), 7) }
        #expect(hits == 2 && loan.grade == .shared && loan.copy().last == 7)
        #expect(pool.reservedByteCount == 256 << 10)
    }

    @Test(
        "memory that cannot be sealed is copied when it is frozen",
        arguments: [Fault(.mmap, ENOMEM, skipping: 1), Fault(.fcntl, EBUSY), Fault(.fcntl, EPERM)])
    func unsealable(_ fault: Fault) async throws {
        try await onBench(over: .socket) { bench in
            let (memory, hits) = try SystemCallFaults.with([fault.rule]) { filled(try LoanedMemory(sealable: 5000), 8) }
            #expect(hits == 1 && memory.grade == .copied && memory.copy() == [UInt8](repeating: 8, count: 5000))
        }
    }

    @Test(
        "a borrower that cannot map the memory loses the message: its request fails, the next one brings the file again",
        arguments: [Fault(.mmap, ENOMEM), Fault(.fcntl, EPERM), Fault(.fstat, EIO)], [TestTransport.socket, .ring])
    func notMapped(_ fault: Fault, over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (pool, port) = (MemoryPool(), try bench.port())
            let right = try bench.right(to: port)
            for _ in 0..<3 {
                try right.send(MachMessage(id: 1))
                #expect(try port.next().id == 1)
                #expect(try port.tryReceive()?.id == nil)
            }
            for isSealed in [false, true] {
                let memory = filled(isSealed ? try LoanedMemory(sealable: 5000) : try pool.loan(5000), 7)
                let requester = runOnThread {
                    portError { () throws(PortError) in _ = try right.ask(MachMessage(memory: memory)) }
                }
                let (_, hits) = SystemCallFaults.with([fault.rule]) {
                    while !requester.hasEnded { port.localPort.receiveFromSockets() }
                }
                #expect(hits == 1)
                #expect(try requester.join()?.code == .descriptorsLost)
                #expect(port.queueCount == 0)
                try right.send(MachMessage(memory: memory))
                let received = try #require(try port.next().memory.first)
                #expect(received.grade == (isSealed ? .sealed : .shared))
                #expect(received.copy().last == 7)
            }
            #expect(pool.lentByteCount == 0)
        }
    }

    @Test(
        "a borrower that has no page of returns, or cannot send it, returns by packets",
        arguments: [
            Fault(.memfd_create, EMFILE), Fault(.memfd_create, ENOSYS), Fault(.sendmsg, EAGAIN),
            Fault(.sendmsg, ENOBUFS),
        ])
    func withoutPage(_ fault: Fault) async throws {
        try await onBench(over: .socket) { bench in
            let (pool, port) = (MemoryPool(), try bench.port())
            let right = try bench.right(to: port)
            try #require(right.destination as? RemotePort).reached().sender.credit.setUnlimited()
            for round in 0..<3 {
                try right.send(MachMessage(memory: filled(try pool.loan(5000), 7)))
                let rule = fault.call == .sendmsg ? fault.rule : fault.permanent
                var (message, hits): (MachMessage?, Int) = try SystemCallFaults.with([rule]) { try port.next() }
                // Another packet may have met the fault: then there is a page from now on.
                #expect(hits > 0 || fault.call == .sendmsg && round > 0)
                #expect(message?.memory.first?.copy().last == 7)
                #expect(pool.lentByteCount == 8192)
                message = nil
                #expect(pool.lentByteCount == 0)
            }
            // Then it has one.
            for _ in 0..<3 {
                try right.send(MachMessage(memory: filled(try pool.loan(5000), 7)))
                _ = try port.next()
                #expect(pool.lentByteCount == 0)
            }
        }
    }

    @Test("a lender that cannot map the page of returns copies from then on; the connection's end returns the rest")
    func pageNotMapped() async throws {
        try await onBench(over: .socket) { bench in
            let (pool, port) = (MemoryPool(), try bench.port())
            var right: SendRight? = try bench.right(to: port)
            try right?.send(MachMessage(memory: filled(try pool.loan(5000), 7)))
            _ = try port.next()
            let (count, hits) = SystemCallFaults.with([Fault(.mmap, ENOMEM).rule]) { pool.lentByteCount }
            #expect(hits == 1 && count == 8192)
            for _ in 0..<2 {
                try right?.send(MachMessage(memory: filled(try pool.loan(5000), 8)))
                let memory = try #require(try port.next().memory.first)
                #expect(memory.grade == .copied && memory.copy().last == 8)
                #expect(pool.lentByteCount == 8192)
            }
            right = nil
            pool.finish { _ = try? port.tryReceive() }
        }
    }

    @Test(
        "a request with memory that cannot wait because no descriptor is left was not sent, and returns its loan",
        arguments: [
            Fault(.epoll_create, EMFILE), Fault(.epoll_ctl, EMFILE), Fault(.epoll_ctl, EMFILE, skipping: 1),
        ])
    func requestAtLimit(_ fault: Fault) async throws {
        try await onBench(over: .socket) { bench in
            let (pool, port) = (MemoryPool(), try bench.port())
            let right = try bench.right(to: port)
            let (error, hits) = SystemCallFaults.with([fault.rule]) {
                portError { () throws(PortError) in
                    let memory = filled(try pool.loan(5000), 7)
                    _ = try right.request(MachMessage(memory: memory), replyLimit: .zero)
                }
            }
            #expect(hits == 1 && error?.code == .descriptorLimit && pool.lentByteCount == 0)
        }
    }

    @Test(
        "a send that the kernel refuses returns its loan, and the next one has the file",
        arguments: [ENOBUFS, ENOMEM, ETOOMANYREFS])
    func notSent(code: CInt) async throws {
        try await onBench(over: .socket) { bench in
            let (pool, port) = (MemoryPool(), try bench.port())
            let right = try bench.right(to: port)
            let (error, hits) = SystemCallFaults.with([Fault(.sendmsg, code).rule]) {
                portError { () throws(PortError) in
                    try right.send(MachMessage(memory: filled(try pool.loan(5000), 7)))
                }
            }
            #expect(hits == 1 && error != nil && pool.lentByteCount == 0)
            try right.send(MachMessage(memory: filled(try pool.loan(5000), 8)))
            let memory = try #require(try port.next().memory.first)
            #expect(memory.grade == .shared && memory.copy().last == 8)
        }
    }

    @Test(
        "memory whose file is lost because its receiver has no descriptor left is returned; the next message has it again"
    )
    func descriptorLost() async throws {
        await #expect(processExitsWith: .success) {
            await Pools.start()
            ReservedDescriptor.shared.reserve()
            try await onBench(over: .socket) { bench in
                let tests = MemoryFaultTests()
                let (pool, port) = (MemoryPool(), try bench.port())
                let right = try bench.right(to: port)
                try right.send(MachMessage(id: 1))
                try #require(right.destination as? RemotePort).reached().sender.credit.setUnlimited()
                _ = try port.next()
                #expect(try port.tryReceive()?.id == nil)
                for isSealed in [false, true] {
                    let requester = runOnThread {
                        portError { () throws(PortError) in
                            let loan = isSealed ? try LoanedMemory(sealable: 5000) : try pool.loan(5000)
                            _ = try right.ask(MachMessage(memory: tests.filled(loan, 7)))
                        }?.code
                    }
                    let deadline = Watchdog.deadline
                    while port.localPort.sockets?.isReadable != true, .now < deadline { yieldThread() }
                    withDescriptorLimit(0) { _ = port.localPort.receiveFromSockets() }
                    #expect(try requester.join() == .descriptorsLost)
                    #expect(pool.lentByteCount == 0)
                }
                try right.send(MachMessage(memory: tests.filled(try pool.loan(5000), 8)))
                let memory = try #require(try port.next().memory.first)
                #expect(memory.grade == .shared && memory.copy().last == 8)
            }
        }
    }
}

#endif
