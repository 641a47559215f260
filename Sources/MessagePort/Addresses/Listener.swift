// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem

/// A listening socket with a path. When this value is deinitialized, it removes the path, then closes the socket; the
/// path of an inherited socket belongs to its supervisor and stays.
package struct Listener: ~Copyable, Sendable {
    /// The listening socket, non-blocking.
    package let descriptor: FileDescriptor
    /// Its name in the directory of sockets; empty for an inherited one.
    package let name: String
    /// The absolute path that others connect to.
    package let path: String
    /// What was at the path when the socket got it; nil for an inherited one, whose path is its supervisor's.
    package let made: FileStatus?
    private let endpoints: ProcessEndpoints?

    /// Whether it was inherited: its supervisor has it too.
    package var isSupervisors: Bool { endpoints == nil }

    init(_ descriptor: consuming FileDescriptor, name: String, of endpoints: ProcessEndpoints) {
        self.descriptor = descriptor
        self.name = name
        self.endpoints = endpoints
        path = endpoints.path(of: name)
        made = (try? sysStatus(name, in: endpoints.sockets.raw)) ?? nil
    }

    /// Takes over a listening socket, non-blocking, that this process inherited, bound to an absolute path.
    package init(inherited descriptor: consuming FileDescriptor, path: String) {
        self.descriptor = descriptor
        self.path = path
        name = ""
        made = nil
        endpoints = nil
    }

    deinit {
        guard let endpoints, endpoints.process == sysProcessID() else { return }
        endpoints.removeSocket(name)
        // Ends the waiting connections, each by itself: they may hold packets, and with the listener they would all be
        // closed at once, on this thread, with everything inside.
        sysShutDown(descriptor.raw)
        while let waiting = try? sysAccept(descriptor.raw) { _ = SharedDescriptor(connection: waiting) }
    }

    /// Removes the path and closes the socket: waiting connections are reset.
    package consuming func close() {}
}
