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
    FileDescriptor(owning: try retrying(.dup) { shim_dup_cloexec(descriptor, 0) })
}

/// Closes a descriptor, and gives its number to the open file of another one, at the same moment.
package func sysReplace(_ descriptor: CInt, by other: CInt) throws(SystemError) {
    _ = try retrying(.dup) { shim_replace_cloexec(descriptor, other) }
}

package func sysCloseOnExec(_ descriptor: CInt) throws(SystemError) {
    _ = try retrying(.fcntl) { shim_set_cloexec(descriptor) }
}

/// Makes an open file non-blocking, for all processes that share it.
package func sysSetNonBlocking(_ descriptor: CInt) throws(SystemError) {
    _ = try retrying(.fcntl) { shim_set_nonblocking(descriptor) }
}

/// Whether calls with a descriptor's open file never wait.
package func sysIsNonBlocking(_ descriptor: CInt) throws(SystemError) -> Bool {
    try retrying(.fcntl) { shim_is_nonblocking(descriptor) } != 0
}

/// How many descriptors this process may have now: its soft limit `RLIMIT_NOFILE`. Numbers are below it.
package func sysDescriptorLimit() -> Int { Int(shim_descriptor_limit()) }

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
