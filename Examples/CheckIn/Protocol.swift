// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import NamedPortServer

/// The message id of a check-in, as listings 3-13 and 3-18 call it.
let kCheckinMessage: Int32 = 100

/// The messages between the main thread and its worker.
enum MessageID {
    /// Worker to main: here I am.
    static let checkIn = kCheckinMessage
    /// Main to worker: count these bytes.
    static let count: Int32 = 101
    /// Worker to main: lines, words and bytes.
    static let counted: Int32 = 102
    /// Main to worker: leave.
    static let leave: Int32 = 103
}

/// Has every file counted by the worker that answers requests.
func count(_ files: [InputFile], asking worker: (MachMessage) throws(PortError) -> MachMessage) throws -> Table {
    var table = Table(for: files)
    for file in files {
        Transcript.note("main", "sends message \(MessageID.count): \(file.name)")
        let reply = try worker(MachMessage(id: MessageID.count, bytes: file.bytes))
        guard let counts = Counts(text: reply.text) else { throw Failure("the worker sent no counts") }
        Transcript.note("main", "got the reply: \(reply.text)")
        table.add(counts, file.name)
    }
    return table
}

/// How long each step may take before the program gives up.
let timeout = Duration.seconds(30)

/// Why the program ended early; its text is the one line on standard error.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// Writes one line to standard error and ends the program.
func leave(_ why: String) -> Never {
    // A name may contain any character: one that would break the line is written as in a string literal.
    let line = why.unicodeScalars.map {
        $0.properties.generalCategory == .control ? $0.escaped(asASCII: true) : String($0)
    }
    FileHandle.standardError.write(Data("checkin: \(line.joined())\n".utf8))
    exit(1)
}

/// The system's error in one short phrase.
func reason(_ error: any Error) -> String {
    let nsError = error as NSError
    let underlying = nsError.userInfo[NSUnderlyingErrorKey] as? NSError ?? nsError
    if underlying.domain == NSPOSIXErrorDomain { return String(cString: strerror(Int32(underlying.code))) }
    switch nsError.code {
    case CocoaError.fileNoSuchFile.rawValue, CocoaError.fileReadNoSuchFile.rawValue:
        return String(cString: strerror(ENOENT))
    case CocoaError.fileReadNoPermission.rawValue: return String(cString: strerror(EACCES))
    default: return nsError.localizedDescription
    }
}
