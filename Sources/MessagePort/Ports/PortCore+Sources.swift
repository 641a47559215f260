// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

extension PortCore {
    /// From now on the source is rung when a message comes, and its loop watches the port's sockets.
    ///
    /// - Returns: false when the port is dead.
    func attach(_ source: RunLoopSource) throws(PortError) -> Bool {
        let (isDead, sockets) = state.withLock { state in
            if !state.mailbox.isDead { state.sources.append(source) }
            return (state.mailbox.isDead, state.sockets)
        }
        if isDead { return false }
        if let sockets {
            do throws(SystemError) {
                try source.watch(sockets.rawValue)
            } catch {
                detach(source)
                throw PortError(error)
            }
        }
        source.ring()
        return true
    }

    /// The source is no longer rung.
    func detach(_ source: RunLoopSource) {
        state.withLock { $0.sources.removeAll { $0 === source } }
    }

    /// The port's sockets, made when they are first needed: every attached source then watches them.
    func openSockets() throws(PortError) -> PortSockets {
        if let sockets = state.withLock({ $0.sockets }) { return sockets }
        let made = try PortSockets()
        let (sockets, sources, isDead, failure) = state.withLock { state in
            var failure: PortError?
            if state.sockets == nil && !state.mailbox.isDead {
                failure = state.bell?.watch(made)
                if failure == nil { state.sockets = made }
            }
            return (state.sockets, state.sources, state.mailbox.isDead, failure)
        }
        if let failure { throw failure }
        guard let sockets, !isDead else { throw PortError(.invalidPort) }
        do throws(SystemError) {
            for source in sources { try source.watch(sockets.rawValue) }
        } catch {
            // Sources that watch nothing would miss what comes through these sockets: the next call starts afresh.
            state.withLock { if $0.sockets === sockets { $0.sockets = nil } }
            for source in sources { try? source.watch(nil) }
            throw PortError(error)
        }
        watchForWaitingTasks()
        return sockets
    }

    /// Gives the port an address, if it has none: a listening socket that nobody can guess.
    package func address() throws(PortError) -> PortAddress {
        if let address = state.withLock({ $0.address }) { return address }
        if isDead { throw PortError(.invalidPort) }
        return try address(in: .user())
    }

    /// Gives the port an address in a directory of the caller's choice; one that it has already stays.
    package func address(in directory: PortDirectory) throws(PortError) -> PortAddress {
        if let address = state.withLock({ $0.address }) { return address }
        let sockets = try openSockets()
        let address = try sockets.listen(in: directory)
        let isDead = state.withLock { state in
            state.address = state.mailbox.isDead ? nil : address
            return state.mailbox.isDead
        }
        if isDead {
            sockets.close()
            throw PortError(.invalidPort)
        }
        RightsTable.shared.publish(self, at: address)
        if self.isDead { RightsTable.shared.forget(address) }
        return address
    }

    /// How many connections its sockets have now.
    package var connectionCount: Int {
        state.withLock { $0.sockets }?.state.withLock { $0.members.count } ?? 0
    }
}
