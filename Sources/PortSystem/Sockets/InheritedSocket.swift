// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims
import PortCLibrary

/// Whether a socket listens for connections.
///
/// - Throws: EBADF when it is not open, ENOTSOCK when it is no socket.
package func sysIsListening(_ descriptor: CInt) throws(SystemError) -> Bool {
    var value: CInt = 0
    var length = socklen_t(MemoryLayout<CInt>.size)
    _ = try retrying(.getsockopt) { unsafe getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &value, &length) }
    return value != 0
}

/// The path of a Unix socket, as it was bound; nil for one without a path.
///
/// - Throws: EBADF when it is not open, ENOTSOCK when it is no socket.
package func sysSocketPath(_ descriptor: CInt) throws(SystemError) -> String? {
    var bytes = [CChar](repeating: 0, count: 256)
    var count: CInt = 0
    _ = try retrying(.getsockname) { unsafe shim_socket_path(descriptor, &bytes, CInt(bytes.count), &count) }
    if count == 0 { return nil }
    return String(validating: bytes.prefix(Int(count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// Makes an open file non-blocking, for all processes that share it.
package func sysSetNonBlocking(_ descriptor: CInt) throws(SystemError) {
    _ = try retrying(.fcntl) { shim_set_nonblocking(descriptor) }
}

/// Makes a listening socket, and the connections that it accepts, receive only bytes and descriptors. With each of
/// these options the kernel adds something to every packet: with `SO_PASSPIDFD`, a descriptor that the receiver did not
/// request.
package func sysReceivePlainly(_ descriptor: CInt) throws(SystemError) {
    for option in [SO_PASSCRED, SO_PASSSEC, passProcessDescriptor] {
        var off: CInt = 0
        do throws(SystemError) {
            _ = try retrying(.setsockopt) {
                unsafe setsockopt(descriptor, SOL_SOCKET, option, &off, socklen_t(MemoryLayout<CInt>.size))
            }
        } catch {
            // A kernel that does not know the option adds nothing.
            if error.code != ENOPROTOOPT && error.code != EOPNOTSUPP { throw error }
        }
    }
}

/// `SO_PASSPIDFD`, Linux 6.5, on the machines where Swift runs.
private let passProcessDescriptor: CInt = 76
