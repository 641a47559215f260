// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

extension MachMessage {
    /// The id of a worker's first message, whose reply port is the worker's own: `kCheckinMessage` of listings 3-13 and
    /// 3-18 of Apple's Run Loops chapter.
    public static let checkIn: Int32 = 100
}

extension SendRight {
    /// Reports to the launcher of this worker that it runs, and how to reach it. Listing 3-15, `sendCheckinMessage:`.
    ///
    /// Schedule the port first, so that it answers from the beginning. Checking in again sends an ordinary message.
    ///
    /// - Parameters:
    ///   - port: the worker's port; the launcher gets a right to it.
    ///   - components: what else the launcher should know.
    ///   - limit: how long to wait for room. A first message finds room at once.
    /// - Throws: as `send(_:within:)`; ``PortError/Code/deadName`` when the launcher is gone, or gave this worker up.
    public func checkIn(
        _ port: MachPort, components: [MachMessage.Component] = [], within limit: Duration = .seconds(10)
    ) throws(PortError) {
        let message = MachMessage(id: MachMessage.checkIn, components: components, replyPort: port.makeSendRight())
        try send(message, within: limit)
    }

    /// The right to the port of the process that launched this one as a worker. `bootstrap_port` of Mach.
    ///
    /// The right is to that one port, over a connection that this process inherited, and the same each time. It has no
    /// address: another process to which it is sent gets a dead name. Programs that this process starts do not inherit
    /// it.
    ///
    /// - Returns: the right; nil when this process was not launched as a worker. A process that a worker started is
    ///   none: it has the variable of the environment, and not the descriptor.
    /// - Throws: ``PortError/Code/bootstrapInvalid`` when the variable cannot be read, when the other end belongs to
    ///   another user, or when the kernel refuses: the descriptor is left alone.
    public static func bootstrap() throws(PortError) -> SendRight? {
        try Bootstrap.right()
    }
}
