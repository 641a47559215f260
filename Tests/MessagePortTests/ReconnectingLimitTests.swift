// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import RunLoopCore
import Synchronization
import Testing

/// An owner of a name that is gone when something is sent to it, unless it is the last one.
private final class Owner: PortEndpoint {
    private let isLast: Bool
    private let isDead = Mutex(false)
    let deadlines = Mutex<[SendDeadline]>([])

    init(isLast: Bool) { self.isLast = isLast }

    var label: String { "owner" }
    func checkProcess() {}
    func pollDeath() -> Bool { isDead.withLock { $0 } }
    func address() throws(PortError) -> PortAddress { throw PortError(.invalidPort) }

    func send(_ offered: inout MachMessage?, until deadline: SendDeadline) throws(PortError) {
        deadlines.withLock { $0.append(deadline) }
        if isLast { return }
        isDead.withLock { $0 = true }
        throw PortError(.deadName)
    }

    nonisolated(nonsending) func send(_ message: MachMessage, waiting wait: TaskWaiter) async throws(PortError) {}
    func awaitDeath(_ notice: DeathNotice) throws(PortError) -> Cancellation { throw PortError(.descriptorLimit) }
    func awaitRoom(_ notice: LoopNotification<SendPossibility>) {}
    func beginReplies(on loop: ThreadRunLoop, in mode: RunLoopMode) {}
    func endReplies(on loop: ThreadRunLoop, in mode: RunLoopMode, to receiver: any ReplyReceiver) {}
}

private struct Finder: PortFinder {
    let owners: [Owner]
    var name: String { "name" }

    /// Called again, in place of a search, when the machine is slow.
    func find() -> SendRight? { SendRight(owners[owners[0].pollDeath() ? 1 : 0]) }

    func search(
        after date: MonotonicInstant, isForSender: Bool,
        _ didFind: @escaping @Sendable (Result<SendRight, PortError>) -> Void
    ) -> Cancellation {
        didFind(.success(SendRight(owners[1])))
        return {}
    }
}

@Suite("The limit of a sender over a right to a name") struct ReconnectingLimitTests {
    @Test("the wait for the next owner and for room there is within the limit that began with the call")
    func oneLimit() throws {
        let owners = [Owner(isLast: false), Owner(isLast: true)]
        try SendRight(ReconnectingPort(Finder(owners: owners))).send(MachMessage(), within: .seconds(10))
        let deadlines = owners.flatMap { $0.deadlines.withLock { $0 } }
        #expect(deadlines.count == 2)
        let instants = deadlines.compactMap { if case .instant(let instant) = $0 { instant } else { nil } }
        #expect(instants.count == 2 && instants.first == instants.last)
    }
}
