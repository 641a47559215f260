// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A name that other processes can resolve: the path of the port's socket. Two addresses are equal when their bytes
/// are: paths that are equal as text, but encode a letter differently, lead to different sockets.
package struct PortAddress: Hashable, Sendable {
    /// The absolute path.
    package let path: String

    package init(path: String) {
        self.path = path
    }

    /// An address that came in a message, if it is valid: an absolute path of less than 4,096 bytes, in which no
    /// component is empty, `.` or `..`, and without NUL. So a port has one address, which identifies it.
    init?(received path: String) {
        let bytes = path.utf8
        guard bytes.first == Self.slash, bytes.count < 4096, !bytes.contains(0) else { return nil }
        for component in bytes.dropFirst().split(separator: Self.slash, omittingEmptySubsequences: false) {
            if component.isEmpty || component.elementsEqual(".".utf8) || component.elementsEqual("..".utf8) {
                return nil
            }
        }
        self.path = path
    }

    package static func == (left: PortAddress, right: PortAddress) -> Bool {
        left.path.utf8.elementsEqual(right.path.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        for byte in path.utf8 { hasher.combine(byte) }
        hasher.combine(UInt8(0))
    }

    /// Leads nowhere, and never will: there is nothing below a device.
    package static let nowhere = PortAddress(path: "/dev/null/dead-name")

    /// Whether it is the address of one port, and never of another: a process's own socket in a directory of sockets.
    /// Others may outlive their port: those that a supervisor made.
    var isOfPort: Bool {
        let name = path.utf8.split(separator: Self.slash).last.flatMap {
            EndpointFileName(String(decoding: $0, as: UTF8.self))
        }
        return name?.isLock == false
    }

    private static let slash = UInt8(ascii: "/")
}
