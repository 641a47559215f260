// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem

/// The outcome of an attempt to connect to a socket's path.
package enum ConnectOutcome: Sendable {
    /// Connected, non-blocking, to a process of this user, or of another that a shared directory admits.
    case connected(SharedDescriptor, peer: PeerIdentity)
    /// A process listens, but its backlog of waiting connections is full.
    case busy
    /// No process listens there.
    case dead
}
