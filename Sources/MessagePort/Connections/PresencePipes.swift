// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// How a port counts rights that other processes have and do not use: with each travels the write end of a pipe, whose
// read end the port watches. The kernel counts the ends, those in messages on their way too, and closes those of a
// process that ends: when the last one is gone, the read end hangs up (Docs/Decisions/0041).
//
// The port retains a write end as long as its rights may leave. When nothing else holds the notice back, it releases the
// end, and cannot get it back: rights that leave later get another pipe.
//
//   no pipe ──a right leaves──▶ open ──no other sender──▶ released ──hang-up──▶ no pipe
//                                 ▲                          │
//                                 ╰──── a right leaves: a second pipe, open until the first has hung up
//
// So there are two of the port's own at most, however its rights come and go: the notice needs the end of both, and the
// second is released only then.

/// What travels with a right that leaves a process. `End` is the write end of a pipe.
enum PresenceExport<End: Sendable>: Sendable {
    /// Its address alone: the port does not count.
    case address
    /// The end of a pipe, too.
    case end(End)
    /// The same: a pipe is to be made first.
    case newPipe
}

/// The pipes of a port: decides, does nothing else. A key names a pipe.
struct PresencePipes<End: Sendable>: Sendable {
    fileprivate struct Pipe {
        let key: UInt64
        let end: End
    }

    /// Whether rights leave with ends: from the first request for a notice on.
    private(set) var isCounting = false
    /// The pipe whose end travels with rights.
    private var open: Pipe?
    /// The pipe whose end the port has released.
    private(set) var released: UInt64?
    /// The pipes of clients that passed on a right that they had found by its name.
    private(set) var announced: Set<UInt64> = []

    /// The pipe whose end travels with rights.
    var opened: (end: End, key: UInt64)? { open.map { ($0.end, $0.key) } }

    mutating func beginCounting() { isCounting = true }

    /// What travels with a right that leaves the process. Ask while there is the right.
    var export: PresenceExport<End> {
        if !isCounting { return .address }
        return open.map { .end($0.end) } ?? .newPipe
    }

    /// A pipe was made, and its read end is watched under the key.
    ///
    /// - Returns: the end that travels; that of another pipe if a thread was faster.
    mutating func open(_ end: End, key: UInt64) -> End {
        if let open { return open.end }
        open = Pipe(key: key, end: end)
        return end
    }

    /// A client has sent the read end of a pipe of its own, which is watched under the key; also before the port counts,
    /// as the client sends it only once.
    mutating func add(key: UInt64) { announced.insert(key) }

    /// Whether ends of other processes are known to be left.
    var isAwaitingEnds: Bool { released != nil || !announced.isEmpty }

    /// Whether the key is that of a pipe here.
    func contains(_ key: UInt64) -> Bool { key == released || key == open?.key || announced.contains(key) }

    /// Only rights of the open pipe can be left.
    ///
    /// - Returns: the port's own end, to be released without a lock; nil when no pipe is open.
    mutating func release() -> End? {
        guard released == nil, let pipe = open.take() else { return nil }
        released = pipe.key
        return pipe.end
    }

    /// Continues the pipes of a port of another process.
    mutating func resume(
        isCounting: Bool, open: (end: End, key: UInt64)?, released: UInt64?, announced: some Sequence<UInt64>
    ) {
        if isCounting { self.isCounting = true }
        self.open = open.map { Pipe(key: $0.key, end: $0.end) }
        self.released = released
        self.announced = Set(announced)
    }

    /// The kernel reports that the last end of a pipe is gone.
    ///
    /// - Returns: false when no pipe has the key.
    mutating func didHangUp(_ key: UInt64) -> Bool {
        guard key == released || announced.contains(key) else { return false }
        if key == released { released = nil }
        announced.remove(key)
        return true
    }
}

extension PresencePipes.Pipe: Equatable where End: Equatable {}
extension PresencePipes.Pipe: Hashable where End: Hashable {}
extension PresencePipes: Equatable where End: Equatable {}
extension PresencePipes: Hashable where End: Hashable {}

// MARK: - Clients

// A right that came in a message travels on with the end that came with it. One that was found by a name, or inherited,
// came without: its connection counts. When it is passed on, its client makes a pipe and announces it to the port over
// that connection: the read end. The port finds the announcement before the end of the connection, however the client
// ends it, so there is no moment at which neither counts. It may not find it when it ends the connection itself, for a
// packet that breaks the format or data that is not read: what was passed on counts from its first use then.

/// The pipe of a client for rights that came without an end: decides, does nothing else.
enum ClientPresence<End: Sendable>: Sendable {
    /// No right has been passed on yet.
    case none
    /// The read end is in the connection, or at the port.
    case announced(End)

    /// The end that travels; nil when a pipe is to be made first.
    var end: End? {
        if case .announced(let end) = self { end } else { nil }
    }

    /// The kernel has accepted the packet with the read end.
    ///
    /// - Returns: the end that travels; that of another pipe if a thread was faster.
    mutating func didAnnounce(_ end: End) -> End {
        if case .announced(let known) = self { return known }
        self = .announced(end)
        return end
    }
}

extension ClientPresence: Equatable where End: Equatable {}
extension ClientPresence: Hashable where End: Hashable {}
