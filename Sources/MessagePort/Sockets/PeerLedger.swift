// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// The accounts of a port's peers, for its sockets and for what outlives those: descriptors that wait to be closed.
final class PeerLedger: Sendable {
    private let accounts = Mutex(PeerAccounts())

    func withLock<Result>(_ body: (inout PeerAccounts) -> Result) -> Result { accounts.withLock { body(&$0) } }
}
