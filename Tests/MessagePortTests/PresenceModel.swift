// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Three processes, the connections between them, and the kernel that counts the ends of pipes: what may happen to the
// rights to one port. The decisions are those of the types that the library uses. All else is what its shell and the
// kernel do, one call at a time, in every order.
//
// A close is a part of the step that leads to it: all that follows is that the port finds it, which is a step of its own
// and may come at any time later.

@testable import MessagePort

/// A mistake of the shell, to show that the model finds it.
enum PresenceFault: CaseIterable {
    /// A right leaves without an end, as if the port did not count.
    case sendsAddressAlone
    /// The end is closed when its message was received, and not with the right.
    case closesOnReceipt
    /// A client passes an end on before it has announced the pipe.
    case announcesLate
    /// The port closes the end of a right that came back before it counts the right.
    case countsLate
    /// The port reports that no client waits, and has not checked.
    case skipsAccepting
    /// The port reports that it begins to accept when it has accepted.
    case reportsAcceptLate
    /// The port retains its own end.
    case retainsEnd
    /// A client's pipe is not watched.
    case dropsAnnouncement
    /// The port moves without its pipes.
    case movesWithoutPipes
    /// The next owner does not count the rights of the former one.
    case forgetsFormerOwner

    var isOfMove: Bool { self == .movesWithoutPipes || self == .forgetsFormerOwner }
}

/// A set of pipes, whose keys are 0 to 7.
struct PipeSet: OptionSet, Hashable {
    var rawValue: UInt8
    init(rawValue: UInt8) { self.rawValue = rawValue }
    init(_ pipe: UInt8) { rawValue = 1 << pipe }
    var pipes: [UInt8] { rawValue == 0 ? [] : (0..<8).filter { rawValue & 1 << $0 != 0 } }
}

/// A process that may have the right, with its connection to the port.
struct PresenceClient: Hashable {
    enum Connection: Hashable { case none, waiting, taken, accepted }

    var isRunning = true
    /// The ends that came with its rights.
    var received = PipeSet([])
    /// Whether it has a right that came without an end.
    var hasBareRight = false
    /// Whether it has found the port by its name.
    var hasNamedRight = false
    var mayLookUp: Bool
    /// Whether it has found the port since that found no client that waits: it is a sender that came after the notice,
    /// unless another ends after that.
    var isLate = false
    var presence = ClientPresence<UInt8>.none
    /// A pipe that is in use, and not announced yet.
    var unannounced = PipeSet([])
    var connection = Connection.none
    /// Whether its end of the connection is closed.
    var isClosed = false
    /// The read ends in the connection that the port has not read.
    var announced = PipeSet([])

    var hasRight: Bool { !received.isEmpty || hasBareRight || hasNamedRight }

    /// A number that differs where two clients without names do.
    fileprivate var code: Int {
        var code = Int(received.rawValue) << 4
        if isRunning { code += 1 }
        if isClosed { code += 2 }
        switch connection {
        case .none: return code
        case .waiting: return code + 4
        case .taken: return code + 8
        case .accepted: return code + 12
        }
    }

    /// The write ends that it has.
    var ends: PipeSet {
        guard case .announced(let end) = presence else { return received }
        return received.union(PipeSet(end))
    }

    /// Its last right is released, or it ends.
    mutating func release() {
        (received, unannounced, presence) = ([], [], .none)
        (hasBareRight, hasNamedRight, isLate) = (false, false, false)
        isClosed = connection != .none
    }
}

struct PresenceWorld: Hashable {
    /// What a thread that accepts clients does.
    enum Accepting: Hashable {
        case nothing, began, foundNone
        case took(Int)
    }

    static let owner = 0
    static let clients = [1, 2]

    // The port.
    var senders = SenderCount()
    var pipes = PresencePipes<UInt8>()
    var rightCount = 0
    /// How many messages may still be sent; nil for any number.
    private(set) var sendCount: Int?
    /// The threads that may accept; the second is not used where one suffices.
    private var firstThread = Accepting.nothing
    private var secondThread = Accepting.nothing
    let threads: ClosedRange<Int>
    var mustAccept = false
    /// Whether a right has come back that is not counted yet.
    var hasUncounted = false
    var isNotified = false
    /// An end that the port has not closed, by mistake.
    var retained = PipeSet([])

    /// Whether the port may move to another process.
    var mayMove: Bool
    /// Whether the process that it has left has a right.
    var hasFormerRight = false
    /// Whether the next owner counts the connection of that process.
    var hasFormerConnection = false

    private var first: PresenceClient
    private var second: PresenceClient
    /// The message that is on its way to each process: 0 none, 1 a right without an end, or 2 and the pipe. It does not
    /// matter which process sent it, nor whether that still runs.
    private var messages = SIMD4<UInt8>(repeating: 0)

    /// The program waits for the notice, and has sent a right to the first client.
    init(sendCount: Int? = nil, named: Int = 0, threads: Int = 1, moves: Bool = false) {
        mayMove = moves
        first = PresenceClient(mayLookUp: named > 0)
        second = PresenceClient(mayLookUp: named > 1)
        self.threads = 1...threads
        pipes.beginCounting()
        makeRight()
        export(to: 1, nil)
        self.sendCount = sendCount
    }

    subscript(client: Int) -> PresenceClient {
        get { client == 1 ? first : second }
        set { if client == 1 { first = newValue } else { second = newValue } }
    }

    subscript(thread number: Int) -> Accepting {
        get { number == 1 ? firstThread : secondThread }
        set { if number == 1 { firstThread = newValue } else { secondThread = newValue } }
    }

    subscript(to receiver: Int) -> UInt8 {
        get { messages[receiver] }
        set {
            if newValue > 0 { sendCount = sendCount.map { $0 - 1 } }
            messages[receiver] = newValue
        }
    }

    /// Whether a message may be sent to a process.
    func maySend(to process: Int) -> Bool {
        (process == Self.owner || self[process].isRunning) && messages[process] == 0 && sendCount != 0
    }

    /// The same with the clients in order, where none has a name: they differ by nothing else.
    var ordered: PresenceWorld {
        guard (first.code, messages[1]) > (second.code, messages[2]) else { return self }
        var world = self
        (world.first, world.second) = (second, first)
        (world.messages[1], world.messages[2]) = (messages[2], messages[1])
        for thread in threads {
            if case .took(let client) = self[thread: thread] { world[thread: thread] = .took(3 - client) }
        }
        return world
    }

    /// The pipes whose write ends are anywhere.
    private var written: PipeSet {
        var ends = first.ends.union(second.ends).union(retained)
        if case .end(let end) = pipes.export { ends.insert(PipeSet(end)) }
        for index in 0...2 where messages[index] > 1 { ends.insert(PipeSet(messages[index] - 2)) }
        return ends
    }

    /// The pipes that the kernel reports as hung up.
    var hungUp: [UInt8] {
        if !pipes.isAwaitingEnds { return [] }
        let unwritten = PipeSet(rawValue: ~written.rawValue)
        return unwritten.pipes.filter { pipes.contains(UInt64($0)) }
    }

    /// A number that is no pipe's.
    private func newPipe() -> UInt8 {
        let used = written.union(first.announced).union(second.announced)
        let free = (0..<8).first { !used.contains(PipeSet($0)) && !pipes.contains(UInt64($0)) }
        guard let free else { fatalError("There are more than eight pipes.") }
        return free
    }

    /// Where a right is left; nil when there is none.
    var holder: String? {
        if rightCount > 0 || hasUncounted { return "the owner has a right" }
        if hasFormerRight { return "the former owner has a right" }
        for client in Self.clients where self[client].hasRight && !self[client].isLate {
            return "client \(client) has a right"
        }
        for process in 0...2 where self[to: process] > 0 { return "a right is on its way to \(process)" }
        return nil
    }
}

// MARK: - What the port does

extension PresenceWorld {
    /// As after each change of the count.
    private mutating func decide(_ fault: PresenceFault?) {
        switch senders.verdict(&pipes, hasAddress: true, isListening: true) {
        case .wait: break
        case .release(let end): if fault == .retainsEnd { retained = PipeSet(end) }
        case .accept: mustAccept = true
        case .notify: isNotified = true
        }
    }

    mutating func senderDidEnd(_ fault: PresenceFault?) {
        (first.isLate, second.isLate) = (false, false)
        decide(fault)
    }

    mutating func makeRight() {
        rightCount += 1
        senders.rightWasMade()
    }

    mutating func dropRight(_ fault: PresenceFault?) {
        rightCount -= 1
        senders.rightDidEnd()
        senderDidEnd(fault)
    }

    mutating func export(to client: Int, _ fault: PresenceFault?) {
        if fault == .sendsAddressAlone { return self[to: client] = 1 }
        switch pipes.export {
        case .address: self[to: client] = 1
        case .end(let end): self[to: client] = 2 + end
        case .newPipe:
            let pipe = newPipe()
            self[to: client] = 2 + pipes.open(pipe, key: UInt64(pipe))
        }
    }

    mutating func seeHangUp(_ pipe: UInt8, _ fault: PresenceFault?) {
        guard pipes.didHangUp(UInt64(pipe)) else { return }
        senders.pipeDidHangUp()
        senderDidEnd(fault)
    }

    mutating func beginAccept(_ thread: Int, _ fault: PresenceFault?) {
        if fault != .reportsAcceptLate { senders.willAccept() }
        (mustAccept, self[thread: thread]) = (false, fault == .skipsAccepting ? .foundNone : .began)
    }

    /// The system call.
    mutating func accept(_ thread: Int) {
        let client = Self.clients.first { self[$0].connection == .waiting }
        self[thread: thread] = client.map { .took($0) } ?? .foundNone
        if let client { self[client].connection = .taken }
    }

    mutating func endAccept(_ thread: Int, _ fault: PresenceFault?) {
        if case .took(let client) = self[thread: thread] {
            (self[client].connection, self[client].isLate) = (.accepted, false)
            senders.clientDidConnect()
        }
        if fault == .reportsAcceptLate { senders.willAccept() }
        senders.didAccept(foundNone: self[thread: thread] == .foundNone)
        self[thread: thread] = .nothing
        decide(fault)
    }

    mutating func readAnnouncement(of client: Int, _ fault: PresenceFault?) {
        guard let pipe = self[client].announced.pipes.first else { return }
        self[client].announced.remove(PipeSet(pipe))
        if fault != .dropsAnnouncement { pipes.add(key: UInt64(pipe)) }
    }

    mutating func seeEnd(of client: Int, _ fault: PresenceFault?) {
        (self[client].connection, self[client].isClosed) = (.none, false)
        senders.clientDidDisconnect()
        senderDidEnd(fault)
    }

    /// A right comes back in a message to another port of the owner's process.
    mutating func receiveBack(_ fault: PresenceFault?) {
        self[to: Self.owner] = 0
        if fault == .countsLate { return hasUncounted = true }
        countReturned()
    }

    mutating func countReturned() {
        hasUncounted = false
        rightCount += 1
        senders.rightWasMade()
    }
}

// MARK: - What a client does

extension PresenceWorld {
    mutating func receive(_ client: Int, _ fault: PresenceFault?) {
        let content = self[to: client]
        self[to: client] = 0
        if content == 1 || fault == .closesOnReceipt {
            self[client].hasBareRight = true
        } else {
            self[client].received.insert(PipeSet(content - 2))
        }
    }

    mutating func connect(_ client: Int, byName: Bool) {
        if self[client].connection == .none { self[client].connection = .waiting }
        if !byName { return }
        (self[client].hasNamedRight, self[client].mayLookUp) = (true, false)
        self[client].isLate = threads.contains { self[thread: $0] == .foundNone }
    }

    /// Passes on a right that came with the end of a pipe, or one that came without, for `nil`.
    mutating func pass(_ received: UInt8?, from client: Int, to receiver: Int, _ fault: PresenceFault?) {
        if let received { return self[to: receiver] = 2 + received }
        guard self[client].hasNamedRight else { return self[to: receiver] = 1 }
        if let end = self[client].presence.end { return self[to: receiver] = 2 + end }
        let pipe = newPipe()
        if fault == .announcesLate {
            _ = self[client].presence.didAnnounce(pipe)
            self[client].unannounced = PipeSet(pipe)
            self[to: receiver] = 2 + pipe
        } else {
            // The message goes in a step of its own.
            self[client].announced.insert(PipeSet(self[client].presence.didAnnounce(pipe)))
        }
    }

    mutating func announce(_ client: Int) {
        self[client].announced.formUnion(self[client].unannounced)
        self[client].unannounced = []
    }

    /// The kernel closes all that the process has; what was on its way there is gone.
    mutating func end(_ client: Int) {
        self[client].release()
        (self[client].isRunning, self[client].mayLookUp) = (false, false)
        self[to: client] = 0
    }
}
