// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// A connection to a port over which one question goes, and what comes because of it.
struct PortQuestion: Sendable {
    /// What became of the attempt to ask.
    enum Outcome: Sendable {
        case asked(PortQuestion)
        /// Too many wait to be accepted.
        case busy
        /// Nobody is there.
        case dead
    }

    private let socket: SharedDescriptor

    /// Readable when something has come.
    var rawValue: CInt { socket.rawValue }

    /// Asks.
    ///
    /// - Parameters:
    ///   - header: the question; it has no payload.
    ///   - outcome: what the attempt to connect to the port gave.
    /// - Returns: what became of it.
    /// - Throws: `descriptorLimit`, `systemCallFailed`.
    static func ask(
        _ header: PacketHeader, over outcome: ConnectOutcome
    ) throws(PortError) -> Outcome {
        switch outcome {
        case .busy: return .busy
        case .dead: return .dead
        case .connected(let socket, _):
            do throws(SystemError) {
                let outcome = try sysSendPacket(socket.rawValue, head: header.words)
                return outcome == .sent ? .asked(PortQuestion(socket: socket)) : .dead
            } catch {
                throw PortError(error)
            }
        }
    }

    /// Takes what has come.
    ///
    /// - Returns: what it is; nil when the other side is gone.
    func hear() throws(SystemError) -> PacketAssembly.Event? {
        let (outcome, head, payload) = try sysReceiveHeadedPacket(socket.rawValue, limit: PacketHeader.packetLimit)
        guard case .packet = outcome, let head, let header = PacketHeader(head) else { return nil }
        var assembly = PacketAssembly()
        return assembly.take(header, payload: payload, descriptors: [])
    }
}
