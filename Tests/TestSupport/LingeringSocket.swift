// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
package import PortSystem
import Synchronization
import Testing

/// A TCP connection whose other end reads nothing: closing it waits until its data are read, or the other end is
/// closed.
package final class LingeringSocket: Sendable {
    private let end: Mutex<SharedDescriptor?>
    private let other: SharedDescriptor

    /// Connects it, and fills it.
    package init() throws {
        let listener = SharedDescriptor(owning: socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let made = SharedDescriptor(owning: socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0))
        let isConnected = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener.rawValue, address, length) == 0 && listen(listener.rawValue, 1) == 0
                    && getsockname(listener.rawValue, address, &length) == 0
                    && connect(made.rawValue, address, length) == 0
            }
        }
        #expect(isConnected)
        other = SharedDescriptor(owning: accept(listener.rawValue, nil, nil))
        var lingers = linger(l_onoff: 1, l_linger: 50)
        #expect(
            setsockopt(made.rawValue, SOL_SOCKET, SO_LINGER, &lingers, socklen_t(MemoryLayout<linger>.size)) == 0)
        let bytes = [UInt8](repeating: 7, count: 65536)
        while Glibc.send(made.rawValue, bytes, bytes.count, CInt(MSG_DONTWAIT)) > 0 {}
        end = Mutex(made)
    }

    /// The end whose close waits, for a message: the test has no other reference to it.
    package func takeEnd() throws -> SharedDescriptor { try #require(end.withLock { $0.take() }) }

    /// The same as a number, which the caller must close.
    package func takeNumber() throws -> CInt {
        let number = try sysDuplicate(#require(end.withLock { $0 }).rawValue).release()
        end.withLock { $0 = nil }
        return number
    }

    /// Closes the other end with everything unread: a close of the first waits no longer.
    package func letGo() throws {
        shutdown(other.rawValue, CInt(SHUT_RDWR))
        var lingers = linger(l_onoff: 1, l_linger: 0)  // a reset
        setsockopt(other.rawValue, SOL_SOCKET, SO_LINGER, &lingers, socklen_t(MemoryLayout<linger>.size))
        let deadline = Watchdog.deadline
        let drain = [UInt8](repeating: 0, count: 65536)
        while !AsyncCloser.isIdle, .now < deadline {
            var buffer = drain
            recv(other.rawValue, &buffer, buffer.count, CInt(MSG_DONTWAIT))
            sched_yield()
        }
    }
}
