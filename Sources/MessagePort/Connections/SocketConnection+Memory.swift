// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// The memory that each end of a connection has lent to the other.
final class ConnectionMemory: Sendable {
    /// How many lenders the other end may have at a time: one, and another when its port has moved.
    private static let borrowerLimit = 2

    private struct State {
        var borrowers: [MemoryBorrower] = []
        var isClosed = false

        func borrower(from lender: UInt64) -> MemoryBorrower? { borrowers.first { $0.lender == lender } }
    }

    let lender: MemoryLender
    private let state = Mutex(State())

    init(over connection: SocketConnection) { lender = MemoryLender(over: connection) }

    /// What borrows of a lender; nil for one lender too many.
    func borrower(from lender: UInt64, over connection: SocketConnection) -> MemoryBorrower? {
        let (found, isClosed) = state.withLock { state -> (MemoryBorrower?, Bool) in
            if let known = state.borrower(from: lender) { return (known, false) }
            if state.borrowers.count >= Self.borrowerLimit { return (nil, false) }
            let made = MemoryBorrower(from: lender, over: connection)
            if !state.isClosed { state.borrowers.append(made) }
            return (made, state.isClosed)
        }
        if isClosed { found?.close() }
        return found
    }

    /// The same, if it has lent something.
    func knownBorrower(from lender: UInt64) -> MemoryBorrower? { state.withLock { $0.borrower(from: lender) } }

    /// For tests: how many segments are mapped.
    var segmentCount: Int { state.withLock { $0.borrowers.reduce(0) { $0 + $1.segmentCount } } }

    /// The port at the other end may have moved: its new process lends anew, and knows nothing of what this end has.
    func ownerMayHaveMoved() {
        closeBorrowers(forGood: false)
        lender.borrowerMayHaveMoved()
    }

    /// The connection has ended. What is lent stays so until it is returned, or nobody has it.
    func close() {
        closeBorrowers(forGood: true)
        lender.close()
    }

    private func closeBorrowers(forGood: Bool) {
        let ended = state.withLock { state in
            if forGood { state.isClosed = true }
            defer { state.borrowers = [] }
            return state.borrowers
        }
        for borrower in ended { borrower.close() }
    }
}

// How memory in messages travels over a connection: the loans before a message's records, and the packets about them.
extension SocketConnection: LendingConnection, BorrowingConnection {
    /// What is lent over the connection, from now on.
    private var memoryInUse: ConnectionMemory {
        if let known = sharedMemory.object { return known }
        let set = sharedMemory.object(orSet: ConnectionMemory(over: self))
        if isClosed { set.close() }
        return set
    }

    /// What lends the memory of a message; nil when it has none.
    func lender(for message: borrowing MachMessage) -> MemoryLender? {
        message.parts.hasMemory ? memoryInUse.lender : nil
    }

    /// The fast path for memory of a pool alone, of a segment that the other side knows.
    ///
    /// - Returns: whether it was sent; if not, nothing is lent.
    func sendLoan(_ message: MachMessage, answering token: UInt64, until deadline: SendDeadline) throws(PortError)
        -> Bool
    {
        guard let memory = message.parts.onlyMemory, case .slot(let slot) = memory.storage,
            memory.count <= MessageLimits.payload, let lender = sharedMemory.object?.lender
        else { return false }
        var charge: LoanCharge?
        guard chargeLoan(of: memory.count, &charge),
            let record = lender.lendKnown(slot, count: memory.count, charge)
        else { return false }
        var isSent = false
        defer { if !isSent { lender.withdraw(record) } }
        let body = record.plainBody
        isSent = try sender.sendPlain(
            LoanRecord.plainHead, body, id: message.id, asks: 0, answers: token, until: deadline,
            over: self)
        BufferPool.leave(consume body)
        return isSent
    }

    /// The loan of a plain packet, if the memory is mapped; nothing is borrowed yet.
    func pendingLoan(_ record: LoanRecord) -> MemoryBorrower.PendingLoan? {
        sharedMemory.withObject { $0.knownBorrower(from: record.lender)?.pendingLoan(record) } ?? nil
    }

    /// A client may have half of what it may use here in loans, so that it can still send.
    func chargeLoan(of byteCount: Int, _ charge: inout LoanCharge?) -> Bool {
        guard isPortsEnd, let quotas = quotas(of: sink) else { return true }
        let hasRoom = quotas.withLock { usage in
            usage.allowance(of: owner).bytes - byteCount >= usage.limits.queuedBytes / 2
        }
        if hasRoom { charge = LoanCharge(quotas.charge(owner, forUnread: ResourceUsage(bytes: byteCount))) }
        return hasRoom
    }

    func watchHangUp(of pipe: SharedDescriptor, _ notify: @escaping @Sendable () -> Void) -> (@Sendable () -> Void)? {
        guard let watches = try? IOThread.arrivals(), let key = try? watches.add(pipe.rawValue, [], once: true, notify)
        else { return nil }
        return {
            watches.remove(key)
            withExtendedLifetime(pipe) {}  // open while it is in the set
        }
    }

    func offerOnSocket(_ header: PacketHeader, _ file: SharedDescriptor) -> Bool {
        (try? sysSendPacket(descriptor.rawValue, head: header.words, body: [], descriptors: [file])) == .sent
    }

    /// Borrows the memory that comes with a message, which begins with these bytes.
    ///
    /// - Returns: the memory, or that some of it is lost; nil when that breaks the format.
    func borrow(with payload: [UInt8], _ descriptors: [SharedDescriptor]?) -> (loans: [MessageMemory], isLost: Bool)? {
        guard let records = EncodedMessage.loans(in: payload) else { return nil }
        var unclaimed = descriptors?[...]
        var (loans, isLost): ([MessageMemory], Bool) = ([], false)
        for (record, hasFile) in records {
            let own = hasFile ? Array(unclaimed?.prefix(2) ?? []) : []
            if hasFile { unclaimed = unclaimed?.dropFirst(2) }
            if hasFile, descriptors != nil, own.count != 2 { return nil }
            guard let borrower = memoryInUse.borrower(from: record.lender, over: self) else { return nil }
            switch borrower.borrow(record, with: own) {
            case .borrowed(let memory): loans.append(memory)
            case .lost: isLost = true
            case .malformed: return nil
            }
        }
        return (loans, isLost)
    }

    /// Handles a packet about memory. What is for a lender that this end had in another process is ignored.
    ///
    /// - Returns: false when it breaks the format.
    func didReceive(aboutMemory event: PacketAssembly.Event) -> Bool {
        guard let memory = sharedMemory.object else { return true }
        switch event {
        case .returnPage(let file, let lender): return lender == memory.lender.id ? memory.lender.accept(file) : true
        case .returned(let number, let lender, let isSegmentUnknown):
            if lender == memory.lender.id { memory.lender.didReturn(number, isSegmentUnknown: isSegmentUnknown) }
        case .segmentEnded(let number, let lender): memory.knownBorrower(from: lender)?.didEnd(number)
        default: return false
        }
        return true
    }
}
