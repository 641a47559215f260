// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

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
    enum CloseMode: UInt8, AtomicRepresentable {
        /// By the thread that releases the last reference.
        case here
        /// By a thread for that purpose: its file is another process's.
        case elsewhere
        /// By a thread for that purpose when the socket has unread packets: they may contain such files.
        case elsewhereUnlessEmpty
        /// By another such thread, which closes pipes and waits for no other kind of file.
        case elsewhereAsPipe
        /// Another object has it.
        case nowhere
    }

    /// The descriptor's number, open as long as this object lives.
    public let rawValue: CInt  // immutable
    /// Changed by the thread that received it, and where its file goes on elsewhere. An owner that releases the object
    /// sees what others have stored before they released it.
    private let closing: Atomic<CloseMode>
    private let closeObserver: (any CloseObserver)?  // immutable
    /// Whether the observer was notified that it stays.
    private let isRetained = Atomic<Bool>(false)
    private let forkGuard = ForkGuard()  // immutable

    /// Whether this is a forked child's copy.
    package var isInherited: Bool { forkGuard.isInherited }

    init(_ descriptor: consuming FileDescriptor, closing: CloseMode, closeObserver: (any CloseObserver)? = nil) {
        rawValue = descriptor.release()
        self.closing = Atomic(closing)
        self.closeObserver = closeObserver
    }

    deinit {
        // A forked child has a copy, which is never the last one.
        let isInherited = self.isInherited
        switch closing.load(ordering: .relaxed) {
        case .here: sysClose(rawValue)
        case .elsewhere:
            if isInherited { sysCloseForeign(rawValue) } else { closeElsewhere(isPipe: false) }
        case .elsewhereUnlessEmpty:
            if isInherited || !sysEndHoldsPackets(rawValue) {
                sysClose(rawValue)
            } else {
                AsyncCloser.close(rawValue)
            }
        case .elsewhereAsPipe:
            if isInherited { sysCloseForeign(rawValue) } else { closeElsewhere(isPipe: true) }
        case .nowhere: break
        }
    }

    private func closeElsewhere(isPipe: Bool) {
        AsyncCloser.close(
            rawValue, of: closeObserver, isPipe: isPipe, isRetained: isRetained.load(ordering: .relaxed))
    }

    /// One that was received stays with a right, as long as that does: its process's account has it until it is closed.
    package func noteIsRetained() {
        if !isRetained.exchange(true, ordering: .relaxed) { closeObserver?.willRetain() }
    }

    /// One that was received is the end of a pipe: its close does not wait behind those of other files.
    func noteIsPipe() {
        _ = closing.compareExchange(expected: .elsewhere, desired: .elsewhereAsPipe, ordering: .relaxed)
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

    /// Another process has the socket, and the connection goes on there: this process only closes its descriptor.
    ///
    /// - Parameter other: the descriptor whose open file the number gets at once, so that what retains this object does
    ///   not keep the connection open; nil for none.
    package func leaveConnection(replacedBy other: CInt? = nil) {
        closing.store(.elsewhere, ordering: .relaxed)
        if let other { try? sysReplace(rawValue, by: other) }
    }

    /// Moves the descriptor out. No other code uses this object.
    package func take() -> FileDescriptor {
        closing.store(.nowhere, ordering: .relaxed)
        return FileDescriptor(owning: rawValue)
    }

    /// A duplicate that the caller owns and closes.
    ///
    /// - Returns: a new descriptor, close-on-exec.
    /// - Throws: `EMFILE` when this process may open no more.
    public func duplicate() throws(SystemError) -> CInt {
        try sysDuplicate(rawValue).release()
    }
}
