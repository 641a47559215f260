// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims
import PortCLibrary

/// A descriptor that a sleeping thread waits on and any thread may signal: an eventfd(2), or a pipe(2) where the system
/// refuses eventfds. Signals coalesce: however many there were, its owner makes it unreadable with one `clear`.
package struct EventDescriptor: ~Copyable, Sendable {
    /// The kernel object behind it.
    package enum Kind: Sendable, CaseIterable {
        case eventfd, pipe
    }

    private let reading: FileDescriptor
    private let writing: FileDescriptor?

    /// Makes an eventfd, or a pipe where the system refuses one.
    package init() throws(SystemError) {
        self = try Refusals.eventDescriptor.avoid { () throws(SystemError) in
            try EventDescriptor(.eventfd)
        } otherwise: { () throws(SystemError) in
            try EventDescriptor(.pipe)
        }
    }

    package init(_ kind: Kind) throws(SystemError) {
        switch kind {
        case .eventfd:
            reading = FileDescriptor(owning: try retrying(.eventfd) { shim_eventfd() })
            writing = nil
        case .pipe:
            let ends = try sysPipe()
            reading = FileDescriptor(owning: ends.reading)
            writing = FileDescriptor(owning: ends.writing)
        }
    }

    /// Which kernel object it is.
    package var kind: Kind {
        switch writing {
        case .none: .eventfd
        case .some: .pipe
        }
    }

    /// The descriptor to wait on: readable after `signal()` until `clear()`.
    package var raw: CInt { reading.raw }

    /// Makes the descriptor readable. A full pipe is readable already, so "would block" is success.
    package func signal() {
        do throws(SystemError) {
            switch writing {
            case .none: _ = try sysWrite(reading.raw, [1, 0, 0, 0, 0, 0, 0, 0])
            case .some(let end): _ = try sysWrite(end.raw, [1])
            }
        } catch {
            fatalError("An event descriptor cannot be signalled: \(error). Did other code close it?")
        }
    }

    /// Makes the descriptor unreadable, however many signals there were.
    package func clear() {
        do throws(SystemError) {
            while let count = try sysDiscard(reading.raw, 512), count == 512 {}
        } catch {
            fatalError("An event descriptor cannot be read: \(error). Did other code close it?")
        }
    }
}

/// Makes a pipe whose ends are non-blocking and close-on-exec.
///
/// - Throws: EMFILE, ENFILE.
func sysPipe() throws(SystemError) -> (reading: CInt, writing: CInt) {
    var ends: (CInt, CInt) = (-1, -1)
    _ = try retrying(.pipe) {
        unsafe withUnsafeMutableBytes(of: &ends) {
            unsafe shim_pipe($0.assumingMemoryBound(to: CInt.self).baseAddress)
        }
    }
    return ends
}
