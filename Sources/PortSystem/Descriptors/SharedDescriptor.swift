// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

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
    private let forkGuard = ForkGuard()  // immutable

    init(_ descriptor: consuming FileDescriptor, closing: CloseMode, closeObserver: (any CloseObserver)? = nil) {
        rawValue = descriptor.release()
        self.closing = closing
        self.closeObserver = closeObserver
    }

    deinit {
        // A forked child has a copy, which is never the last one.
        let isInherited = forkGuard.isInherited
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
