// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem

/// Leaves the calling thread, and those that it starts, one of the processors that it may use: the first, or another by
/// its index among them.
package func useProcessor(_ index: Int) throws {
    typealias Call = @convention(c) (pid_t, Int, UnsafeMutablePointer<UInt64>) -> CInt
    // Glibc's Swift overlay lacks both functions.
    guard let get = dlsym(nil, "sched_getaffinity"), let set = dlsym(nil, "sched_setaffinity") else {
        throw SystemError(ENOSYS)
    }
    var mask = [UInt64](repeating: 0, count: 16)
    let size = mask.count * MemoryLayout<UInt64>.size
    guard unsafeBitCast(get, to: Call.self)(0, size, &mask) == 0 else { throw SystemError(errno) }
    let allowed = (0..<mask.count * 64).filter { mask[$0 / 64] >> ($0 % 64) & 1 == 1 }
    guard allowed.indices.contains(index) else { throw SystemError(EINVAL) }
    mask = mask.indices.map { $0 == allowed[index] / 64 ? 1 << (allowed[index] % 64) : 0 }
    guard unsafeBitCast(set, to: Call.self)(0, size, &mask) == 0 else { throw SystemError(errno) }
}
