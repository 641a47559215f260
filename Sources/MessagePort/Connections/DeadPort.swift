// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
package import RunLoopCore

/// The destination of a right whose port was known to be gone when the right was sent.
package final class DeadPort: PortEndpoint {
    private let path: PortAddress  // immutable
    private let forkGuard = ForkGuard()  // immutable

    package init(_ path: PortAddress) { self.path = path }

    deinit {
        if !forkGuard.isInherited { RightsTable.shared.prune(path) }
    }

    package var label: String { "port at \(harmlessText(path.path))" }
    package func pollDeath() -> Bool { true }

    package func checkProcess() {}

    package func send(_ offered: inout MachMessage?, until deadline: SendDeadline) throws(PortError) {
        throw PortError(.deadName)
    }

    nonisolated(nonsending) package func send(_ message: MachMessage, waiting wait: TaskWaiter) async throws(PortError)
    {
        throw PortError(.deadName)
    }

    package func owner() throws(PortError) -> PeerIdentity { throw PortError(.deadName) }
    package func address() -> PortAddress { path }
    package func awaitDeath(_ notice: DeathNotice) -> Cancellation {
        notice.notify()
        return {}
    }

    package func awaitRoom(_ notice: LoopNotification<SendPossibility>) { notice.notify(.deadName) }
    package func beginReplies(on loop: ThreadRunLoop, in mode: RunLoopMode) {}
    package func endReplies(on loop: ThreadRunLoop, in mode: RunLoopMode, to receiver: any ReplyReceiver) {}
}
