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

    init(_ descriptor: consuming FileDescriptor, name: String, of endpoints: ProcessEndpoints) {
        self.descriptor = descriptor
        self.name = name
        self.endpoints = endpoints
        path = endpoints.path(of: name)
        made = (try? sysStatus(name, in: endpoints.sockets.raw)) ?? nil
    }

    /// Takes over a listening socket that this process inherited.
    ///
    /// - Parameters:
    ///   - descriptor: the socket, non-blocking.
    ///   - path: the absolute path to which it is bound.
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
        refuseWaiting()
    }

    /// Ends the waiting connections, each by itself: they may hold packets, and with the listener they would all be
    /// closed at once, on this thread, with everything inside.
    private func refuseWaiting() {
        sysShutDown(descriptor.raw)
        while let waiting = try? sysAccept(descriptor.raw) { _ = SharedDescriptor(connection: waiting) }
    }

    /// Removes the path and closes the socket: waiting connections are reset.
    package consuming func close() {}
}

// A socket address has room for a path of 107 bytes (`sun_path` of unix(7), with the NUL at its end). A longer one is
// reached through the open directory: /proc/self/fd/<descriptor>/<name>.
extension PortError.StaticReason {
    static let needsProc = Self("a path of more than 107 bytes is reached through /proc, which is not mounted")
}

/// Paths as a socket address can hold them.
package enum SocketPath {
    /// The most bytes of a path in a socket address.
    static let limit = 107

    /// A path that fits, of a name in an open directory; valid while the directory is open.
    package static func reachable(_ name: String, in directory: TrustedDirectory) -> String {
        let path = directory.path + "/" + name
        return path.utf8.count <= limit ? path : through(directory.raw, name)
    }

    /// The path of a name through an open directory.
    static func through(_ directory: Int32, _ name: String) -> String { "/proc/self/fd/\(directory)/\(name)" }

    /// The path of an open file; nil where /proc is not mounted.
    static func through(_ file: Int32) -> String? {
        let path = "/proc/self/fd/\(file)"
        return ((try? sysStatus(atPath: path)) ?? nil) == nil ? nil : path
    }

    /// Why a path at which no process was found cannot be reached at all; nil when it can.
    static func refusal(_ path: String) -> PortError.StaticReason? {
        if path.utf8.count <= limit || (try? sysStatus(atPath: "/proc/self/fd")) ?? nil != nil { return nil }
        return .needsProc
    }

    /// The two parts of an absolute path: its directory, and its last name. Nil for a path that no socket can have.
    static func split(_ path: String) -> (directory: String, name: String)? {
        let bytes = path.utf8
        guard bytes.first == UInt8(ascii: "/"), !bytes.contains(0),
            let slash = bytes.lastIndex(of: UInt8(ascii: "/")), bytes.index(after: slash) != bytes.endIndex
        else { return nil }
        let directory = slash == bytes.startIndex ? "/" : String(path[..<slash])
        return (directory, String(path[bytes.index(after: slash)...]))
    }
}
