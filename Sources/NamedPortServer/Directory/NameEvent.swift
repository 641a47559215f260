// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A name has come or gone.
public enum NameEvent: Hashable, Sendable, CustomStringConvertible {
    /// A port holds the name from now on.
    case appeared(PortNameServer.Registration)
    /// The port holds the name no more: it was unregistered, its port ended, or its owner did.
    case went(PortNameServer.Registration)

    /// The name, and the process that holds it or did.
    public var registration: PortNameServer.Registration {
        switch self {
        case .appeared(let registration), .went(let registration): registration
        }
    }

    /// One line.
    public var description: String {
        switch self {
        case .appeared(let registration): "appeared: \(registration)"
        case .went(let registration): "went: \(registration)"
        }
    }
}
