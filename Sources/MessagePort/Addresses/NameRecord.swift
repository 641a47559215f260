// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

// What the file of a held name says, in UTF-8, each line ended by a line feed:
//
//     swift-port-name 1                  the format and its version
//     owner 4711                         the process that holds the name
//     since 86400                        when it was registered: whole seconds on CLOCK_MONOTONIC, since the machine
//                                        started
//     socket 61 /run/user/1000/swift-ports/sockets/…
//                                        the byte count of the path, the path (it may hold any byte but NUL)
//     end
//
// Numbers are decimal, without sign and leading zeros. A record has exactly this one form: bytes that differ from it
// anywhere, such as a record that is written only in part, are no record. The lock of the file, not the record, says
// whether the name is held.

/// What a held name's file says about its owner.
package struct NameRecord: Hashable, Sendable {
    /// The process that holds the name.
    package let owner: Int32
    /// When the name was registered: seconds on the monotonic clock, as in `MonotonicInstant`. Never negative.
    package let since: Int64
    /// The absolute path of the port's socket.
    package let socketPath: String

    /// The record of a port of this process, which holds the name from now on; nil when the path is out of range.
    package init?(of address: PortAddress) {
        self.init(
            owner: sysProcessID(), since: MonotonicInstant.now.nanoseconds / 1_000_000_000, socketPath: address.path)
    }

    /// Makes a record; nil when a part is out of range: a process id below 1, a negative moment, a path that is
    /// relative, holds a NUL or has more than `pathLimit` bytes.
    package init?(owner: Int32, since: Int64, socketPath: String) {
        let bytes = socketPath.utf8
        guard owner > 0, since >= 0, bytes.first == UInt8(ascii: "/"), bytes.count <= Self.pathLimit, !bytes.contains(0)
        else { return nil }
        self.owner = owner
        self.since = since
        self.socketPath = socketPath
    }

    /// How many bytes a path may have: `PATH_MAX` without its NUL.
    package static let pathLimit = 4095
}

extension NameRecord {
    private static let version = 1

    /// The record as the file holds it.
    package var contents: [UInt8] {
        let head = "swift-port-name \(Self.version)\nowner \(owner)\nsince \(since)\nsocket \(socketPath.utf8.count) "
        return Array((head + socketPath + "\nend\n").utf8)
    }

    /// Parses a record; nil for every sequence of bytes that is not one.
    package init?(contents: [UInt8]) {
        var rest = contents[...]
        func field(_ key: String, endedBy end: Unicode.Scalar) -> Int64? {
            guard rest.starts(with: key.utf8) else { return nil }
            rest = rest.dropFirst(key.utf8.count)
            guard let stop = rest.firstIndex(of: UInt8(ascii: end)) else { return nil }
            let digits = rest[..<stop]
            rest = rest[(stop + 1)...]
            return digits.count <= 19 ? Int64(String(decoding: digits, as: UTF8.self)) : nil
        }
        guard field("swift-port-name ", endedBy: "\n") == Int64(Self.version),
            let owner = field("owner ", endedBy: "\n").flatMap({ Int32(exactly: $0) }),
            let since = field("since ", endedBy: "\n"),
            let count = field("socket ", endedBy: " "), (0...Int64(Self.pathLimit)).contains(count),
            let path = String(validating: rest.prefix(Int(count)), as: UTF8.self),
            let record = NameRecord(owner: owner, since: since, socketPath: path), record.contents == contents
        else { return nil }
        self = record
    }
}
