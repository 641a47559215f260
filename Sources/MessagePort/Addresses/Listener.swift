// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem

/// A listening socket with a path. When it goes away, so does its path, then the socket.
package struct Listener: ~Copyable, Sendable {
    /// The listening socket, non-blocking.
    package let descriptor: FileDescriptor
    /// Its name in the directory of sockets.
    package let name: String
    private let endpoints: ProcessEndpoints

    init(_ descriptor: consuming FileDescriptor, name: String, of endpoints: ProcessEndpoints) {
        self.descriptor = descriptor
        self.name = name
        self.endpoints = endpoints
    }

    deinit {
        endpoints.removeSocket(name)
    }

    /// The absolute path that others connect to.
    package var path: String { endpoints.path(of: name) }

    /// Takes the path away and closes the socket: connections that wait are reset.
    package consuming func close() {}
}
