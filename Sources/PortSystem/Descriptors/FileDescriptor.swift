// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims
import PortCLibrary

/// A file descriptor with exactly one owner, closed when the owner is destroyed.
package struct FileDescriptor: ~Copyable, Sendable {
    /// The descriptor's number, valid as long as this value lives.
    package let raw: CInt

    /// Takes ownership of an open descriptor.
    package init(owning raw: CInt) {
        self.raw = raw
    }

    deinit {
        sysClose(raw)
    }

    /// Gives up ownership: the caller closes the descriptor from now on.
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

/// Closes a descriptor. EINTR counts as closed; EBADF means that other code closed a descriptor that we own, and traps.
@inline(never)
package func sysClose(_ descriptor: CInt) {
    let (result, code) = (close(descriptor), errno)
    if result != 0, code == EBADF {
        fatalError(
            "Descriptor \(descriptor) was closed by code that does not own it. Pass a duplicate to code that closes it."
        )
    }
}

/// Closes a descriptor of an open file that another process made. The file's implementation decides the result of
/// close, and how long it takes: the result has no meaning here.
@inline(never)
func sysCloseForeign(_ descriptor: CInt) {
    _ = close(descriptor)
}

/// Another descriptor for the same open file, close-on-exec.
package func sysDuplicate(_ descriptor: CInt) throws(SystemError) -> FileDescriptor {
    FileDescriptor(owning: try retrying(.dup) { shim_dup_cloexec(descriptor) })
}

/// Makes a descriptor close-on-exec.
package func sysCloseOnExec(_ descriptor: CInt) throws(SystemError) {
    _ = try retrying(.fcntl) { shim_set_cloexec(descriptor) }
}

/// Makes an open file non-blocking, for all processes that share it.
package func sysSetNonBlocking(_ descriptor: CInt) throws(SystemError) {
    _ = try retrying(.fcntl) { shim_set_nonblocking(descriptor) }
}

/// How many descriptors this process may have now: its soft limit `RLIMIT_NOFILE`. Numbers are below it.
package func sysDescriptorLimit() -> Int { Int(shim_descriptor_limit()) }

/// A file descriptor with several owners, closed when the last reference is released: the form in which a descriptor
/// travels in a message.
///
/// An optimized build releases the object after its last use, and so may close the descriptor that `rawValue` returned:
/// make calls that use the number within `withExtendedLifetime`.
///
/// One that came in a message is closed soon after its last release, by a thread that does nothing else: its file,
/// which another process made, may make the closing thread wait.
///
/// - Important: Thread safety: any thread.
public final class SharedDescriptor: Sendable {
    /// How the descriptor is closed.
    enum CloseMode {
        /// By the thread that releases the last reference.
        case here
        /// By a thread for that purpose: its file is another process's.
        case elsewhere
        /// By a thread for that purpose when the socket has unread packets: they may contain such files.
        case elsewhereUnlessEmpty
    }

    /// The descriptor's number, open as long as this object lives.
    public let rawValue: CInt  // immutable
    private let closing: CloseMode  // immutable
    private let closeObserver: (any CloseObserver)?  // immutable
    private let forkCount = sysForkCount()  // immutable

    init(_ descriptor: consuming FileDescriptor, closing: CloseMode, closeObserver: (any CloseObserver)? = nil) {
        rawValue = descriptor.release()
        self.closing = closing
        self.closeObserver = closeObserver
    }

    deinit {
        // A forked child has a copy, which is never the last one.
        let isInherited = sysForkCount() != forkCount
        switch closing {
        case .here: sysClose(rawValue)
        case .elsewhere:
            if isInherited { sysCloseForeign(rawValue) } else { AsyncCloser.close(rawValue, of: closeObserver) }
        case .elsewhereUnlessEmpty:
            if isInherited || !sysEndHoldsPackets(rawValue) {
                sysClose(rawValue)
            } else {
                AsyncCloser.close(rawValue)
            }
        }
    }

    /// Takes ownership of an open descriptor, and closes it when the last reference to this object is released.
    ///
    /// - Parameter descriptor: an open descriptor that no other code will close.
    public convenience init(owning descriptor: CInt) {
        self.init(FileDescriptor(owning: descriptor), closing: .here)
    }

    /// Duplicates an open descriptor; the original remains the caller's.
    ///
    /// - Parameter descriptor: an open descriptor.
    /// - Throws: `EBADF` when it is not open, `EMFILE` when this process may open no more.
    public convenience init(duplicating descriptor: CInt) throws(SystemError) {
        self.init(try sysDuplicate(descriptor), closing: .here)
    }

    package convenience init(_ descriptor: consuming FileDescriptor) {
        self.init(descriptor, closing: .here)
    }

    /// Takes ownership of a connected packet socket, in which another process may leave packets. The connection ends
    /// with this object, even if other processes have the socket.
    package convenience init(connection descriptor: consuming FileDescriptor) {
        self.init(descriptor, closing: .elsewhereUnlessEmpty)
    }

    /// Takes ownership of a descriptor that another process sent.
    ///
    /// - Parameters:
    ///   - descriptor: the descriptor.
    ///   - closeObserver: the observer to notify while it waits to be closed.
    package convenience init(
        received descriptor: consuming FileDescriptor, from closeObserver: (any CloseObserver)? = nil
    ) {
        self.init(descriptor, closing: .elsewhere, closeObserver: closeObserver)
    }

    /// A duplicate that the caller owns and closes.
    ///
    /// - Returns: a new descriptor, close-on-exec.
    /// - Throws: `EMFILE` when this process may open no more.
    public func duplicate() throws(SystemError) -> CInt {
        try sysDuplicate(rawValue).release()
    }
}

/// Reads at most `capacity` bytes.
///
/// - Returns: the bytes, none at the end of the file; nil when a non-blocking descriptor has nothing now.
package func sysRead(_ descriptor: CInt, capacity: Int) throws(SystemError) -> [UInt8]? {
    let wanted = transferCount(.read, capacity)
    var bytes = [UInt8](repeating: 0, count: wanted)
    let count = try unlessBlocked { () throws(SystemError) in
        try retrying(.read) { unsafe read(descriptor, &bytes, wanted) }
    }
    guard let count else { return nil }
    bytes.removeLast(wanted - count)
    return bytes
}

/// Reads and discards at most `capacity` bytes, up to 512.
///
/// - Returns: how many there were; nil when a non-blocking descriptor has nothing now.
package func sysDiscard(_ descriptor: CInt, _ capacity: Int) throws(SystemError) -> Int? {
    let wanted = transferCount(.read, capacity)
    return try unlessBlocked { () throws(SystemError) in
        try retrying(.read) { shim_discard(descriptor, wanted) }
    }
}

/// Writes as many of the bytes as the descriptor accepts.
///
/// - Returns: how many were written; nil when a non-blocking descriptor accepts none now.
package func sysWrite(_ descriptor: CInt, _ bytes: some Collection<UInt8>) throws(SystemError) -> Int? {
    let count = transferCount(.write, bytes.count)
    let array = Array(bytes)
    return try unlessBlocked { () throws(SystemError) in
        try retrying(.write) { unsafe write(descriptor, array, count) }
    }
}

/// Reads the rest of a file.
///
/// - Parameters:
///   - descriptor: the open file.
///   - limit: the most bytes to read, for a file whose size others decide.
/// - Returns: its contents, from the current position on.
/// - Throws: the errors of read(2).
package func sysReadAll(_ descriptor: CInt, limit: Int = .max) throws(SystemError) -> [UInt8] {
    var contents: [UInt8] = []
    while contents.count < limit,
        let piece = try sysRead(descriptor, capacity: min(Tuning.readSize, limit - contents.count)), !piece.isEmpty
    {
        contents += piece
    }
    return contents
}

/// Writes all of the bytes to a blocking descriptor, such as a file.
package func sysWriteAll(_ descriptor: CInt, _ bytes: [UInt8]) throws(SystemError) {
    var rest = bytes[...]
    while !rest.isEmpty, let count = try sysWrite(descriptor, rest) {
        rest = rest.dropFirst(count)
    }
}

/// Writes a sentence to standard error, as far as that accepts it.
package func sysWriteToStandardError(_ sentence: String) {
    try? withoutBrokenPipeSignal { () throws(SystemError) in _ = try sysWrite(STDERR_FILENO, sentence.utf8) }
}
