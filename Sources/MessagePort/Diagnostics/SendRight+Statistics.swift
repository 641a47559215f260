// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

extension SendRight {
    /// What the right's port has counted. A port of another process is asked over a connection: it answers when it
    /// receives, before its handler is called, and the question uses no slot of its queue.
    ///
    /// The question has a connection of its own, which is not counted among the port's senders.
    ///
    /// - Parameter limit: how long to wait for the answer.
    /// - Returns: the statistics; nil when no answer came: the port is gone, its owner is busy for longer than the
    ///   limit, or does not know the question; or the right has no address, like that of ``bootstrap()``.
    /// - Throws: ``PortError/Code/forkedProcess``; ``PortError/Code/descriptorLimit``,
    ///   ``PortError/Code/systemCallFailed``.
    @available(*, noasync, message: "It blocks the thread.")
    public func statistics(within limit: Duration) throws(PortError) -> PortStatistics? {
        try destination.checkProcess()
        if let core = destination as? LocalPort { return core.isDead ? nil : core.statistics }
        guard destination is RemotePort else { return nil }
        return try StatisticsInquiry.ask([destination.address()], until: .after(limit))[0].statistics
    }
}

extension SendRight {
    /// The process at the other end of the connection to the port, as the kernel knows it; nil without a connection.
    package var connectedProcess: Int32? { (destination as? RemotePort)?.connection?.peer.processID }

    /// How many bytes this process has sent to the port, with 8 for each component; none to a port of its own. It rises
    /// while a large message is under way.
    package var sentByteCount: Int {
        (destination as? RemotePort)?.connection?.sender.sentByteCount.load(ordering: .relaxed) ?? 0
    }
}
