// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort

// What a move of the port to another process does.
extension PresenceWorld {
    /// Whether the port is quiet: no client is being accepted.
    var isQuiet: Bool {
        !hasUncounted && self[to: Self.owner] == 0 && threads.allSatisfy { self[thread: $0] == .nothing }
    }

    /// The port is another process's, whose program waits for the notice.
    mutating func move(_ fault: PresenceFault?) {
        mayMove = false
        let hasHadClients = senders.pack()
        let packed = pipes
        (senders, pipes) = (SenderCount(), PresencePipes())
        senders.resume(hasHadClients: hasHadClients)
        if fault != .movesWithoutPipes {
            pipes.resume(
                isCounting: packed.isCounting, open: packed.opened, released: packed.released,
                announced: packed.announced)
        }
        for client in Self.clients where self[client].connection == .accepted { senders.clientDidConnect() }
        (hasFormerRight, rightCount) = (rightCount > 0, 0)
        if fault != .forgetsFormerOwner {
            hasFormerConnection = true
            senders.clientDidConnect()
        }
        mustAccept = false
        pipes.beginCounting()
        senders.noticeWasRequested()
        senderDidEnd(fault)
    }

    /// Its connection closes with that.
    mutating func dropFormerRight() { hasFormerRight = false }

    mutating func seeFormerEnd(_ fault: PresenceFault?) {
        hasFormerConnection = false
        senders.clientDidDisconnect()
        senderDidEnd(fault)
    }
}
