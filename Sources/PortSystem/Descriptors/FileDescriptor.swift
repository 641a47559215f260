// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims
import PortCLibrary

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

/// Closes a descriptor of an open file that another process made. The file's close decides what is reported, and how
/// long it takes: nothing that it says means anything here.
@inline(never)
func sysCloseForeign(_ descriptor: CInt) {
    _ = close(descriptor)
}

/// Another descriptor for the same open file, close-on-exec.
package func sysDuplicate(_ descriptor: CInt) throws(SystemError) -> FileDescriptor {
    FileDescriptor(owning: try retrying(.dup) { shim_dup_cloexec(descriptor) })
}

/// How many descriptors this process may have now: its soft limit `RLIMIT_NOFILE`. Numbers are below it.
package func sysDescriptorLimit() -> Int { Int(shim_descriptor_limit()) }

/// A file descriptor with several owners, closed when the last lets go: the form in which a descriptor travels in a
/// message.
///
/// An optimized build releases the object after its last use, and so may close what `rawValue` gave: call what takes the number
/// within `withExtendedLifetime`.
///
/// One that came in a message is closed soon after, by a thread that has nothing else to do: its file, which another
/// process made, may keep whoever closes it waiting.
///
/// - Important: Thread safety: any thread.
public final class SharedDescriptor: Sendable {
    /// How the descriptor is closed.
    enum Closing {
        /// By whoever lets go last.
        case here
        /// By a thread of its own: its file is another process's.
        case elsewhere
        /// By a thread of its own when packets lie in the socket unread: there may be such files inside.
        case elsewhereUnlessEmpty
    }

    /// The descriptor's number, open as long as this object lives.
    public let rawValue: CInt  // immutable
    private let closing: Closing  // immutable
    private let giver: (any CloseObserver)?  // immutable
    private let forkCount = sysForkCount()  // immutable

    init(_ descriptor: consuming FileDescriptor, closing: Closing, giver: (any CloseObserver)? = nil) {
        rawValue = descriptor.release()
        self.closing = closing
        self.giver = giver
    }

    deinit {
        // A forked child has a copy, which is never the last.
        let isInherited = sysForkCount() != forkCount
        switch closing {
        case .here: sysClose(rawValue)
        case .elsewhere:
            if isInherited { sysCloseForeign(rawValue) } else { AsyncCloser.close(rawValue, of: giver) }
        case .elsewhereUnlessEmpty:
            if isInherited || !sysEndHoldsPackets(rawValue) {
                sysClose(rawValue)
            } else {
                AsyncCloser.close(rawValue)
            }
        }
    }

    /// Takes over an open descriptor, and closes it when the last reference to this object goes.
    ///
    /// - Parameter descriptor: an open descriptor that nobody else will close.
    public convenience init(owning descriptor: CInt) {
        self.init(FileDescriptor(owning: descriptor), closing: .here)
    }

    /// Duplicates an open descriptor; the original stays with the caller.
    ///
    /// - Parameter descriptor: an open descriptor.
    /// - Throws: `EBADF` when it is not open, `EMFILE` when this process may open no more.
    public convenience init(duplicating descriptor: CInt) throws(SystemError) {
        self.init(try sysDuplicate(descriptor), closing: .here)
    }

    package convenience init(_ descriptor: consuming FileDescriptor) {
        self.init(descriptor, closing: .here)
    }

    /// Takes over a connected socket of packets, in which another process may leave some. The connection ends with this
    /// object, whoever else has the socket.
    package convenience init(connection descriptor: consuming FileDescriptor) {
        self.init(descriptor, closing: .elsewhereUnlessEmpty)
    }

    /// Takes over a descriptor that another process sent.
    ///
    /// - Parameters:
    ///   - descriptor: the descriptor.
    ///   - giver: who is told while it waits to be closed.
    package convenience init(received descriptor: consuming FileDescriptor, from giver: (any CloseObserver)? = nil) {
        self.init(descriptor, closing: .elsewhere, giver: giver)
    }

    /// A duplicate that the caller owns and closes.
    ///
    /// - Returns: a new descriptor, close-on-exec.
    /// - Throws: `EMFILE` when this process may open no more.
    public func duplicate() throws(SystemError) -> CInt {
        try sysDuplicate(rawValue).release()
    }
}
