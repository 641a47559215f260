// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// A connection to a port for one query and what comes in response.
struct PortQuery: Sendable {
    private let socket: SharedDescriptor

    /// Readable when a packet has come.
    var rawValue: CInt { socket.rawValue }

    /// Sends the query over a connection to the port; nil when the other side is gone.
    ///
    /// - Throws: `descriptorLimit`, `systemCallFailed`.
    init?(_ header: PacketHeader, payload: ArraySlice<UInt8> = [], over socket: SharedDescriptor) throws(PortError) {
        let outcome = try PortError.converting(sysSendPacket(socket.rawValue, head: header.words, body: payload))
        if outcome != .sent { return nil }
        self.socket = socket
    }

    /// Reads a packet that has come.
    ///
    /// - Returns: its result; nil when the other side is gone.
    func receive() throws(SystemError) -> PacketAssembly.Event? {
        let (outcome, head, payload) = try sysReceiveHeadedPacket(socket.rawValue, limit: PacketHeader.packetLimit)
        guard case .packet = outcome, let head, let header = PacketHeader(head) else { return nil }
        var assembly = PacketAssembly()
        return assembly.accept(header, payload: payload, descriptors: [])
    }
}
