// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary

/// An error number of the kernel, as in `errno(3)`.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The error number, for example `EMFILE`.
    public let code: CInt

    /// Wraps an error number.
    ///
    /// - Parameter code: a number from `errno(3)`.
    public init(_ code: CInt) {
        self.code = code
    }

    /// The C library's sentence for the number, with the number itself.
    public var description: String {
        var buffer = [CChar](repeating: 0, count: 256)
        _ = unsafe strerror_r(code, &buffer, buffer.count)
        let text = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return "\(String(decoding: text, as: UTF8.self)) (errno \(code))"
    }

    /// True for the numbers that mean that this process, or the system, has no descriptor left.
    package var isDescriptorLimit: Bool { code == EMFILE || code == ENFILE }

    /// True for the numbers with which kernels and filters refuse a call altogether.
    package var isRefusal: Bool { code == ENOSYS || code == EPERM || code == EINVAL || code == EOPNOTSUPP }

    /// True for the numbers that mean that the kernel has no memory at the moment.
    package var isMemoryShortage: Bool { code == ENOBUFS || code == ENOMEM }

    /// True for the numbers that mean that the kernel can watch no more descriptors until resources are released.
    package var isShortage: Bool { isDescriptorLimit || isMemoryShortage || code == ENOSPC }

    /// True when the kernel passes no more descriptors for this user until some that are in flight have been received.
    package var isInFlightLimit: Bool { code == ETOOMANYREFS }
}
