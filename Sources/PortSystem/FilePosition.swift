// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc

/// Sets the place at which an open file is read and written next to its beginning.
package func sysRewind(_ descriptor: CInt) throws(SystemError) {
    _ = try retrying(.write) { lseek(descriptor, 0, SEEK_SET) }
}
