// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// A connection to a port for one question and what comes in response.
struct PortQuestion: Sendable {
    /// The outcome of the attempt to ask.
    enum Outcome: Sendable {
        case asked(PortQuestion)
        /// The listener's backlog is full.
        case busy
        /// No process listens there.
        case dead
    }

    private let socket: SharedDescriptor

    /// Readable when a packet has come.
    var rawValue: CInt { socket.rawValue }

    /// Asks.
    ///
    /// - Parameters:
    ///   - header: the question; it has no payload.
    ///   - outcome: the outcome of the attempt to connect to the port.
    /// - Returns: the outcome.
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

    /// Reads a packet that has come.
    ///
    /// - Returns: its result; nil when the other side is gone.
    func hear() throws(SystemError) -> PacketAssembly.Event? {
        let (outcome, head, payload) = try sysReceiveHeadedPacket(socket.rawValue, limit: PacketHeader.packetLimit)
        guard case .packet = outcome, let head, let header = PacketHeader(head) else { return nil }
        var assembly = PacketAssembly()
        return assembly.take(header, payload: payload, descriptors: [])
    }
}
