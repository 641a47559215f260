// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

extension PortSockets {
    /// Most connections that one call accepts; the others are reported again.
    private static let acceptBudget = 64

    /// Accepts the connections that wait.
    func acceptAll(for core: PortCore) {
        for _ in 0..<Self.acceptBudget {
            guard acceptOne(for: core) else { return }
        }
    }

    /// - Returns: whether there may be more.
    private func acceptOne(for core: PortCore) -> Bool {
        // Between the backlog and the count a client would be seen in neither.
        core.clientMayCome()
        defer { core.clientDidGo() }
        do throws(SystemError) {
            guard let accepted = try accept() else { return false }
            let socket = SharedDescriptor(connection: accepted)
            guard let connection = try? SocketConnection(socket, port: core) else { return true }
            // Who is not admitted may not even begin to talk: asked before the first message is read.
            guard core.peerRules.policy.admits(ConnectingPeer(connection.peer, on: socket)) else {
                SocketConnection.sendRefusal(.peerRefused, to: socket)
                return true
            }
            if let refusal = refusal(adding: connection) {
                SocketConnection.sendRefusal(refusal, to: socket)
                return true
            }
            // Most clients send at once: their message comes with this turn.
            connection.receive(into: core)
            return true
        } catch {
            // Without a descriptor the connection would wait, and be reported, for ever: accept it with the spare one.
            return error.isDescriptorLimit && SpareDescriptor.shared.lend { refuseOne() }
        }
    }

    /// - Returns: why the connection is not kept.
    private func refusal(adding connection: SocketConnection) -> PortError.Code? {
        do throws(PortError) {
            try add(connection, isLimited: true)
            return nil
        } catch {
            return error.code
        }
    }

    private func accept() throws(SystemError) -> FileDescriptor? {
        // Under the lock, so that the listener is not closed, and its number reused, before the call.
        let result = state.withLock { state -> Result<CInt?, SystemError> in
            guard let number = state.listener?.descriptor.raw else { return .success(nil) }
            do throws(SystemError) {
                return .success(try sysAccept(number)?.release())
            } catch {
                return .failure(error)
            }
        }
        return try result.get().map { FileDescriptor(owning: $0) }
    }

    /// Accepts a connection only to tell it that there is no descriptor for it.
    private func refuseOne() -> Bool {
        guard let accepted = try? accept() else { return false }
        // Closed here, so that the spare descriptor is there again when this returns.
        SocketConnection.sendRefusal(.descriptorLimit, to: SharedDescriptor(accepted))
        return true
    }
}

/// A descriptor kept for the moment in which there is no other: lent, it lets a connection be refused cleanly.
final class SpareDescriptor: Sendable {
    static let shared = SpareDescriptor()

    private let spare = Mutex<EpollSet?>(nil)

    /// Makes sure that there is one.
    func keep() {
        spare.withLock { spare in
            if spare == nil { spare = try? EpollSet() }
        }
    }

    /// Calls `body` while one more descriptor can be opened.
    ///
    /// - Returns: the body's answer; false when there is no spare one.
    func lend(_ body: () -> Bool) -> Bool {
        spare.withLock { spare in
            let wasThere = spare != nil
            spare = nil
            defer { spare = try? EpollSet() }
            return wasThere && body()
        }
    }
}
