// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// How a port knows whether a right to it is left. All send rights of this process to one of its ports share one object; its
// end is the end of the last of them. Clients of other processes are counted by their connections. Both are Mach's make-send
// count in other words: a notice is told for the senders that there were, not for those that come later.

package final class SenderPresence: Sendable {
    private let core: PortCore  // immutable
    private let number: UInt64  // immutable

    init(_ core: PortCore, _ number: UInt64) {
        self.core = core
        self.number = number
    }

    deinit {
        core.sendersDidGo(number)
    }
}

/// Whether a port has senders, and who wants to know when it has none any more: decides, does nothing else.
struct SenderTally: Sendable {
    private weak var presence: SenderPresence?
    private var lastNumber: UInt64 = 0
    private var notices: [LoopNotice<Void>] = []
    /// How many processes are connected, without those that only look on.
    private(set) var clientCount: Int32 = 0
    /// How many threads accept at this moment, each perhaps another process.
    private var acceptingCount: UInt16 = 0
    private var hasRights = false
    private var hasHadClients = false

    /// The object that the rights of this process share.
    mutating func makePresence(_ core: PortCore) -> SenderPresence {
        if let presence { return presence }
        lastNumber += 1
        hasRights = true
        let made = SenderPresence(core, lastNumber)
        presence = made
        return made
    }

    /// The last right of this process has gone, unless there is a newer one.
    ///
    /// - Returns: the notices that are due.
    mutating func rightsDidGo(_ number: UInt64, hasAddress: Bool) -> [LoopNotice<Void>] {
        if number == lastNumber { hasRights = false }
        return takeDue(hasAddress)
    }

    /// A client may be about to be accepted: until then nobody is told that there is none.
    mutating func willAccept() {
        acceptingCount += 1
    }

    /// - Returns: the notices that are due.
    mutating func didAccept(hasAddress: Bool) -> [LoopNotice<Void>] {
        acceptingCount -= 1
        return takeDue(hasAddress)
    }

    mutating func clientMayCome() {
        clientCount += 1
    }

    /// Who may have come has not, or only looks on.
    ///
    /// - Returns: the notices that are due.
    mutating func clientDidNotCome(hasAddress: Bool) -> [LoopNotice<Void>] {
        clientCount -= 1
        return takeDue(hasAddress)
    }

    /// - Returns: the notices that are due.
    mutating func clientDidGo(hasAddress: Bool) -> [LoopNotice<Void>] {
        hasHadClients = true
        return clientDidNotCome(hasAddress: hasAddress)
    }

    /// - Returns: whether the notice is due already.
    mutating func wait(_ notice: LoopNotice<Void>, hasAddress: Bool) -> Bool {
        if isDue(hasAddress) { return true }
        notices.removeAll { $0.isOver }
        notices.append(notice)
        return false
    }

    /// The port has ended: nobody is told.
    mutating func takeAll() -> [LoopNotice<Void>] {
        defer { notices = [] }
        return notices
    }

    private mutating func takeDue(_ hasAddress: Bool) -> [LoopNotice<Void>] {
        isDue(hasAddress) ? takeAll() : []
    }

    /// There were senders, and none is left. A port with an address that nobody has connected to yet still waits for the
    /// first: somebody was given the address.
    private func isDue(_ hasAddress: Bool) -> Bool {
        !hasRights && clientCount == 0 && acceptingCount == 0
            && (hasAddress ? hasHadClients : lastNumber > 0 || hasHadClients)
    }
}
