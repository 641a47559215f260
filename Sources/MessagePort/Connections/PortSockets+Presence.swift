// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

// The read ends of the pipes that count a port's rights in other processes (`PresencePipes`), in the same set as its
// sockets.

/// A read end, which is counted in the account of the process that sent it. Released with no lock held.
final class PipeEnd: Sendable {
    let descriptor: SharedDescriptor  // immutable
    private let account: (quotas: PeerQuotas, owner: PeerID)?  // immutable

    /// The process that sent it.
    var owner: PeerID? { account?.owner }

    init(_ descriptor: SharedDescriptor, in account: (quotas: PeerQuotas, owner: PeerID)? = nil) {
        self.descriptor = descriptor
        self.account = account
        if let (quotas, owner) = account { quotas.withLock { $0.addPipeEnd(of: owner) } }
    }

    deinit {
        if let (quotas, owner) = account { quotas.removePipeEnd(of: owner) }
    }
}

extension PortSockets {
    /// A key for a read end that is about to be watched.
    func makeReadEndKey() -> UInt64 { ConnectionTable.makeNumber() }

    /// Watches a read end until it hangs up.
    ///
    /// - Throws: `invalidPort` when the sockets are closed; why the kernel cannot watch it.
    func watch(_ end: PipeEnd, key: UInt64) throws(PortError) {
        try state.withLock { (state) throws(PortError) in
            if state.phase == .closed { throw PortError(.invalidPort) }
            // No events: a hang-up is always reported.
            try PortError.converting(epoll.add(end.descriptor.rawValue, [], key: key))
            state.readEnds[key] = end
        }
    }

    /// Watches a read end no more. Its file may be open elsewhere too, so that its closing would not end the watch.
    ///
    /// - Returns: whether it was watched.
    @discardableResult
    func unwatch(readEnd key: UInt64) -> Bool {
        let end = state.withLock { state in
            let end = state.readEnds.removeValue(forKey: key)
            if let end { epoll.remove(end.descriptor.rawValue) }
            return end
        }
        return end != nil  // released without the lock
    }

    /// The read ends that are watched.
    var readEnds: [UInt64: PipeEnd] { state.withLock { $0.readEnds } }

    /// The last end of a pipe may be gone.
    func handleHangUp(_ report: EpollReport, of sink: any MessageSink) {
        guard !report.events.isDisjoint(with: .hangUpOrError), unwatch(readEnd: report.key) else { return }
        sink.pipeDidHangUp(report.key)
    }

    /// Whether a client waits to be accepted, as the kernel knows it now.
    var hasWaitingClient: Bool {
        state.withLock { state in
            guard let listener = state.listener?.descriptor.raw else { return false }
            // A poll that fails finds out nothing.
            return (try? sysPoll(listener, .readable, until: .distantPast))?.isEmpty != true
        }
    }
}

extension SocketConnection {
    /// The peer has sent the read end of a pipe, from now on a sender of the port: once at most, so that no peer can send
    /// many within a message.
    ///
    /// - Returns: whether the connection goes on.
    func acceptReadEnd(_ end: SharedDescriptor?, _ sink: (any MessageSink)?) -> Bool {
        guard isPortsEnd, !hasAnnounced.exchange(true, ordering: .relaxed) else { return refuse(.malformedPacket) }
        guard let end else { return refuse(.descriptorLimit) }
        // Where the system does not say, it is not watched: what is passed on counts from its first use.
        guard let isReadEnd = PresencePipe.isReadEnd(end) else { return true }
        guard isReadEnd else { return refuse(.malformedPacket) }
        guard let sink, let sockets = sink.sockets else { return true }
        if noteMessages() { sink.clientDidConnect() }
        let key = sockets.makeReadEndKey()
        sink.addPipe(key)  // before it can be found to have hung up
        do throws(PortError) {
            try sockets.watch(PipeEnd(end, in: quotas(of: sink).map { ($0, owner) }), key: key)
        } catch {
            sink.pipeDidHangUp(key)
            return error.code == .invalidPort || refuse(.descriptorLimit)
        }
        return true
    }

    /// The right to a port at an address in a message from the peer, with the end that came with it.
    ///
    /// - Returns: nil when that is no end of a pipe.
    func receivedRight(at address: PortAddress, with end: SharedDescriptor?) -> SendRight? {
        RightsTable.shared.right(receivedAt: address, with: end, from: owner)
    }
}

extension RightsTable {
    /// The right to a port at an address in a message, with the end that came with it from a process.
    ///
    /// - Returns: nil when that is no end of a pipe.
    func right(receivedAt address: PortAddress, with end: SharedDescriptor?, from sender: PeerID?) -> SendRight? {
        guard let end else { return right(receivedAt: address) }
        guard let received = ReceivedEnd(end, from: sender) else { return nil }
        end.noteIsRetained()
        return right(receivedAt: address, with: received)
    }
}
