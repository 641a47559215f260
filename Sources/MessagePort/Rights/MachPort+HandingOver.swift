// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

// A port that is handed over to another process, with what it has.
extension MachPort {
    /// Sends the receive right to the successor.
    package func handOver(to successor: SendRight, within limit: Duration) throws(PortError) {
        try successor.send(handOverMessage, within: limit)
    }

    /// The same in a task.
    nonisolated(nonsending) package func handOver(
        to successor: SendRight, within limit: Duration
    ) async throws(PortError) {
        try await successor.send(handOverMessage, within: limit)
    }

    private var handOverMessage: MachMessage { MachMessage(components: [.receiveRight(self)]) }

    /// Whether other processes of this user may ask that the port be handed over; initially they may not.
    public var allowsHandOver: Bool { localPort.allowsHandOver }

    /// Sets whether other processes of this user may ask that the port be handed over to a successor, for example with
    /// `portctl handover`.
    ///
    /// The library hands it over when such a process asks, as with a message that has the receive right: this object is
    /// invalid then, without a call of its invalidation handler. The successor decides anew whether it allows that.
    ///
    /// - Parameters:
    ///   - allows: false ends what was allowed before.
    ///   - handler: called once, in a task, when the port is the successor's. It may end the program.
    public func setAllowsHandOver(_ allows: Bool, whenHandedOver handler: (@Sendable () -> Void)? = nil) {
        if !allows { return localPort.setHandOver(nil) }
        localPort.setHandOver { [weak self] successor, limit, didEnd in
            Task {
                do throws(PortError) {
                    guard let self else { throw PortError(.invalidPort) }
                    try await self.handOver(to: RightsTable.shared.right(receivedAt: successor), within: limit)
                    didEnd(nil)
                    handler?()
                } catch {
                    didEnd(error)
                }
            }
        }
    }
}
