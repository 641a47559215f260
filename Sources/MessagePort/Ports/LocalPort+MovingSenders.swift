// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

// What counts a port's senders moves with it: the pipes. Clients are counted by their connections, and the rights of the
// process that it leaves by a connection, too.
extension LocalPort {
    /// Called before the port has an address for its move.
    func willMove() {
        state.withLock { state in
            if state.hasColdState, state.coldState.address == nil, state.coldState.pipes.isCounting {
                state.senders.willGetAddress()
            }
        }
    }

    /// Packs what counts the senders of a frozen port. From now on, until the port is thawed, no notice is delivered, and
    /// a right that leaves has the end of a pipe that is packed.
    ///
    /// - Returns: the ends of the pipes, in the order in which they travel.
    func packSenders(
        of sockets: PortSockets, _ clients: [SocketConnection]
    ) throws(PortError) -> (presence: PortSnapshot.Presence, ends: [SharedDescriptor]) {
        let hasHadClients = state.withLock { $0.senders.pack() } || sockets.hasEndedClient
        if exportsEnds { _ = try export(nil) }
        let pipes = state.withLock { $0.coldState.pipes }
        let readEnds = sockets.readEnds
        var presence = PortSnapshot.Presence(isCounting: pipes.isCounting, hasHadClients: hasHadClients)
        var ends: [SharedDescriptor] = []
        /// A pipe that was found to have hung up is not watched any more.
        func add(_ key: UInt64?) -> PipeEnd? {
            guard let key else { return nil }
            guard let end = readEnds[key] else {
                presence.hasHadClients = true
                return nil
            }
            ends.append(end.descriptor)
            return end
        }
        if let open = pipes.opened, add(open.key) != nil {
            presence.hasOpenPipe = true
            ends.append(open.end)
        }
        presence.hasReleasedPipe = add(pipes.released) != nil
        for key in pipes.announced.sorted() {
            guard let end = add(key) else { continue }
            presence.announcers.append(clients.firstIndex { $0.owner == end.owner })
        }
        return (presence, ends)
    }

    /// Continues to count the senders of a port that has come from another process.
    ///
    /// - Throws: why the kernel cannot watch the pipes.
    func resumeSenders(_ arrived: ReceivedPresence, in sockets: PortSockets) throws(PortError) {
        // First: from then on a hang-up may be found.
        state.withLock { state in
            state.senders.resume(hasHadClients: arrived.saved.hasHadClients)
            state.coldState.pipes.resume(
                isCounting: arrived.saved.isCounting, open: arrived.open, released: arrived.released,
                announced: arrived.announced)
        }
        for (key, end) in arrived.readEnds { try sockets.watch(end, key: key) }
    }
}

/// What counts the senders of a port that has come from another process.
struct ReceivedPresence: Sendable {
    let saved: PortSnapshot.Presence
    private(set) var readEnds: [(key: UInt64, end: PipeEnd)] = []
    private(set) var open: (end: SharedDescriptor, key: UInt64)?
    private(set) var released: UInt64?
    private(set) var announced: [UInt64] = []

    /// - Throws: `malformedPacket` when the descriptors are no pipes.
    init(
        _ saved: PortSnapshot.Presence, _ descriptors: inout ArraySlice<SharedDescriptor>,
        _ clients: [SocketConnection], in sockets: PortSockets
    ) throws(PortError) {
        self.saved = saved
        if saved.hasOpenPipe {
            let key = try takeReadEnd(&descriptors, in: sockets)
            guard let end = descriptors.popFirst(), PresencePipe.identity(ofWriteEnd: end) != nil else {
                throw PortError(.malformedPacket)
            }
            open = (end, key)
        }
        if saved.hasReleasedPipe { released = try takeReadEnd(&descriptors, in: sockets) }
        for index in saved.announcers {
            announced.append(try takeReadEnd(&descriptors, of: index.map { clients[$0] }, in: sockets))
        }
    }

    private mutating func takeReadEnd(
        _ descriptors: inout ArraySlice<SharedDescriptor>, of client: SocketConnection? = nil, in sockets: PortSockets
    ) throws(PortError) -> UInt64 {
        guard let end = descriptors.popFirst(), PresencePipe.isReadEnd(end) == true else {
            throw PortError(.malformedPacket)
        }
        let key = sockets.makeReadEndKey()
        readEnds.append((key, PipeEnd(end, in: client.map { (sockets.quotas, $0.owner) })))
        return key
    }
}
