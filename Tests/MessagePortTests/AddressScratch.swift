// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import Glibc
import MessagePort
import PortSystem

/// A directory of one test, removed with all that is in it when the test releases it.
final class AddressScratch: Sendable {
    let path: String

    init() throws {
        path = "/tmp/port-addresses-\(EndpointFileName.makeID())"
        _ = try sysMakeDirectory(path)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// A path in the directory.
    func path(_ name: String) -> String { path + "/" + name }

    /// Makes a regular file.
    func makeFile(_ name: String, mode: mode_t = 0o600, _ contents: [UInt8] = []) throws {
        let file = try sysOpen(path(name), .creating)
        try sysWriteAll(file.raw, contents)
        chmod(path(name), mode)
    }
}

/// Whether this process may give files to other users.
var isRoot: Bool { sysUserID() == 0 }

/// A user other than this one.
let otherUser: uid_t = 65534
