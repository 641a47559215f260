// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

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
