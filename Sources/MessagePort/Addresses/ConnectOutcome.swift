// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem

/// What an attempt to connect to a socket's path gave.
package enum ConnectOutcome: Sendable {
    /// Connected, non-blocking, to a process of this user.
    case connected(SharedDescriptor, peer: PeerIdentity)
    /// Somebody listens, but as many connections as it lets wait are waiting.
    case busy
    /// Nobody listens there.
    case dead
}
