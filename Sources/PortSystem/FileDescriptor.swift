// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims
import Glibc

/// A file descriptor with exactly one owner, closed when the owner is done with it.
package struct FileDescriptor: ~Copyable, Sendable {
    /// The descriptor's number, valid as long as this value lives.
    package let raw: CInt

    /// Takes over an open descriptor.
    package init(owning raw: CInt) {
        self.raw = raw
    }

    deinit {
        sysClose(raw)
    }

    /// Gives the descriptor up: the caller closes it from now on.
    package consuming func release() -> CInt {
        let number = raw
        discard self
        return number
    }

    /// Another descriptor for the same open file, close-on-exec.
    package func duplicate() throws(SystemError) -> FileDescriptor {
        try sysDuplicate(raw)
    }
}

/// Closes a descriptor. EINTR counts as closed; EBADF means that somebody closed what we own, and traps.
@inline(never)
package func sysClose(_ descriptor: CInt) {
    let (result, code) = (close(descriptor), errno)
    if result != 0, code == EBADF {
        fatalError(
            "Descriptor \(descriptor) was closed by someone who does not own it. Pass a duplicate to whoever closes it."
        )
    }
}

/// Another descriptor for the same open file, close-on-exec.
package func sysDuplicate(_ descriptor: CInt) throws(SystemError) -> FileDescriptor {
    FileDescriptor(owning: try retrying(.dup) { shim_dup_cloexec(descriptor) })
}

/// A file descriptor with several owners, closed when the last lets go: the form in which a descriptor travels in a message.
///
/// - Important: Thread safety: any thread.
public final class SharedDescriptor: Sendable {
    private let descriptor: FileDescriptor  // immutable

    /// Takes over an open descriptor, and closes it when the last reference to this object goes.
    ///
    /// - Parameter descriptor: an open descriptor that nobody else will close.
    public init(owning descriptor: CInt) {
        self.descriptor = FileDescriptor(owning: descriptor)
    }

    /// Duplicates an open descriptor; the original stays with the caller.
    ///
    /// - Parameter descriptor: an open descriptor.
    /// - Throws: `EBADF` when it is not open, `EMFILE` when this process may open no more.
    public init(duplicating descriptor: CInt) throws(SystemError) {
        self.descriptor = try sysDuplicate(descriptor)
    }

    package init(_ descriptor: consuming FileDescriptor) {
        self.descriptor = descriptor
    }

    /// The descriptor's number, open as long as this object lives.
    public var rawValue: CInt { descriptor.raw }

    /// A duplicate that the caller owns and closes.
    ///
    /// - Returns: a new descriptor, close-on-exec.
    /// - Throws: `EMFILE` when this process may open no more.
    public func duplicate() throws(SystemError) -> CInt {
        try descriptor.duplicate().release()
    }
}
