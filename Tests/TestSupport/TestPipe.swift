// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
package import PortSystem

/// Both ends of a pipe, which no other program inherits.
package struct TestPipe: Sendable {
    package let reading: SharedDescriptor
    package let writing: SharedDescriptor

    /// Makes a pipe. Reading and writing block, unless `isBlocking` is false.
    package init(isBlocking: Bool = true) throws {
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { throw SystemError(errno) }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            if !isBlocking { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
        }
        reading = SharedDescriptor(owning: ends[0])
        writing = SharedDescriptor(owning: ends[1])
    }

    /// Writes bytes.
    package func put(_ bytes: [UInt8] = [7]) throws {
        _ = try sysWrite(writing.rawValue, bytes)
    }

    /// Reads up to `count` bytes.
    package func take(_ count: Int = 1) throws -> [UInt8]? {
        try sysRead(reading.rawValue, capacity: count)
    }
}
