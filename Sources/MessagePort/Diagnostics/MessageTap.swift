// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem
import Synchronization

/// Gets copies of the messages of a port of another process, over a connection of its own.
package struct MessageTap: ~Copyable {
    package enum Event: Hashable, Sendable {
        /// A message was dequeued, and `leftOut` messages before it were left out.
        case message(TappedMessage, leftOut: UInt64)
        /// The port, or its owner, has ended.
        case ended
    }

    private let query: PortQuery
    private var lastNumber: UInt64?

    /// Asks for copies of the messages of a port: that many bytes of each, ``TappedMessage/byteLimit`` at most.
    ///
    /// - Throws: `notWatchable` when its owner does not allow it, `deadName` when no process listens there,
    ///   `replyTimedOut` when no answer came; the errors of a connection to the port.
    package init(_ address: PortAddress, byteLimit: Int, until deadline: MonotonicInstant) throws(PortError) {
        query = try Self.begin(address, byteLimit, until: deadline)
    }

    private static func begin(
        _ address: PortAddress, _ byteLimit: Int, until deadline: MonotonicInstant
    ) throws(PortError) -> PortQuery {
        let header = PacketHeader(kind: .tap, totalLength: UInt64(max(0, byteLimit)))
        let query: PortQuery?
        switch try ProcessEndpoints.connect(toPath: address.path, until: deadline) {
        case .connected(let socket, _): query = try PortQuery(header, over: socket)
        case .busy: throw PortError(.replyTimedOut)
        case .dead: query = nil
        }
        guard let query else { throw PortError(.deadName) }
        guard let event = try event(of: query, until: deadline) else { throw PortError(.replyTimedOut) }
        switch event {
        case .tapAnswered(true): return query
        // An owner that does not know the query refuses it.
        case .tapAnswered(false), .refused: throw PortError(.notWatchable)
        case .portEnded: throw PortError(.deadName)
        default: throw PortError(.malformedPacket)
        }
    }

    /// Readable when a packet has come.
    package var rawValue: CInt { query.rawValue }

    /// Waits for the next event.
    ///
    /// - Returns: nil when the deadline passed first.
    package mutating func next(until deadline: MonotonicInstant) throws(PortError) -> Event? {
        guard let event = try Self.event(of: query, until: deadline) else { return nil }
        guard case .shown(let message) = event else { return .ended }
        defer { lastNumber = message.number }
        return .message(message, leftOut: lastNumber.map { message.number &- $0 &- 1 } ?? 0)
    }

    /// - Returns: nil at the deadline.
    private static func event(
        of query: PortQuery, until deadline: MonotonicInstant
    ) throws(PortError) -> PacketAssembly.Event? {
        if try PortError.converting(sysPoll(query.rawValue, .readable, until: deadline)).isEmpty { return nil }
        return try PortError.converting(query.receive()) ?? .portEnded
    }
}

extension MachPort {
    /// Whether other processes of the same user may watch this port's messages; initially they may not.
    public var allowsWatching: Bool {
        localPort.isInherited ? false : localPort.state.withLock { $0.coldState.taps != nil }
    }

    /// Sets whether other processes of the same user may watch this port's messages, for example with `portctl watch`.
    ///
    /// Such a process sees the head of each message as it is dequeued, its sender, and the beginning of its bytes, but
    /// no descriptors and rights, and no replies. A message that finds no room on its way there is left out and counted.
    /// Each message costs a system call for each process that watches.
    ///
    /// - Parameter allows: false ends what was allowed before.
    public func setAllowsWatching(_ allows: Bool) {
        if localPort.isInherited { return }
        let ended = localPort.state.withLock { state -> [TapConnection] in
            let taps = state.coldState.taps
            if (taps != nil) == allows { return [] }
            state.coldState.taps = allows ? [] : nil
            return taps ?? []
        }
        for tap in ended { tap.connection.object?.answerTap(false) }
    }
}
