// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims
import PortCLibrary

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
        let piece = try sysRead(descriptor, capacity: min(4096, limit - contents.count)), !piece.isEmpty
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
