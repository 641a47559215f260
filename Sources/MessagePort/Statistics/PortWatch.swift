// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem

/// Watches the messages of a port of another process, over a connection of its own.
package struct PortWatch: ~Copyable {
    /// What comes.
    package enum Event: Hashable, Sendable {
        /// A message was taken, and so many before it were left out.
        case message(WatchedMessage, leftOut: UInt64)
        /// The port, or its owner, has ended.
        case ended
    }

    private let socket: SharedDescriptor
    private var lastNumber: UInt64?

    /// Asks to be shown the messages of a port.
    ///
    /// - Parameters:
    ///   - address: where the port is.
    ///   - byteLimit: how many bytes of each message; ``WatchedMessage/byteLimit`` at most.
    ///   - deadline: when to give up.
    /// - Throws: `peerRefused` when its owner does not agree, `deadName` when nobody is there, `replyTimedOut` when no answer
    ///   came; as a connection to the port.
    package init(_ address: PortAddress, byteLimit: Int, until deadline: MonotonicInstant) throws(PortError) {
        guard case .connected(let socket, _) = try ProcessEndpoints.connect(toPath: address.path, until: deadline)
        else {
            throw PortError(.deadName)
        }
        let header = PacketHeader(kind: .watch, totalLength: UInt64(max(0, byteLimit)))
        do throws(SystemError) {
            _ = try sysSendPacket(socket.rawValue, head: header.encoded, body: [], descriptors: [])
        } catch {
            throw PortError(error)
        }
        guard let event = try Self.event(from: socket, until: deadline) else { throw PortError(.replyTimedOut) }
        switch event {
        case .watchAnswered(true): break
        case .watchAnswered(false), .refused: throw PortError(.peerRefused, subject: .reason(.notWatchable))
        default: throw PortError(.malformedPacket)
        }
        self.socket = socket
    }

    /// Readable when something has come.
    package var rawValue: CInt { socket.rawValue }

    /// Waits for what comes next.
    ///
    /// - Returns: nil when the deadline came first.
    package mutating func next(until deadline: MonotonicInstant) throws(PortError) -> Event? {
        guard let event = try Self.event(from: socket, until: deadline) else { return nil }
        guard case .shown(let message) = event else { return .ended }
        defer { lastNumber = message.number }
        return .message(message, leftOut: lastNumber.map { message.number &- $0 &- 1 } ?? 0)
    }

    /// - Returns: nil at the deadline.
    private static func event(
        from socket: SharedDescriptor, until deadline: MonotonicInstant
    ) throws(PortError) -> PacketAssembly.Event? {
        do throws(SystemError) {
            if try sysPoll(socket.rawValue, .readable, until: deadline).isEmpty { return nil }
            guard case (.packet, let bytes) = try sysReceivePacket(socket.rawValue, limit: PacketHeader.packetLimit),
                let header = PacketHeader(bytes)
            else { return .portEnded }
            var assembly = PacketAssembly()
            return assembly.take(header, payload: Array(bytes.dropFirst(PacketHeader.size)), descriptors: [])
        } catch {
            throw PortError(error)
        }
    }
}

extension PortError.StaticReason {
    fileprivate static let notWatchable = Self(
        "Its owner does not let itself be watched: MachPort.setAllowsWatching(true).")
}
