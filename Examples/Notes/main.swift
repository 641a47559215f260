// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// notes serve | add TEXT | list | remove NUMBER | stop
//
// A service, and its command-line client.

import Foundation
import NamedPortServer

/// What others have written, without what would act on a terminal.
func harmless(_ text: String) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.filter { $0.properties.generalCategory != .control }))
}

/// Writes one line to standard error and ends the program, with a status of sysexits(3).
func fail(_ why: String, status: Int32) -> Never {
    FileHandle.standardError.write(Data("notes: \(why)\n".utf8))
    exit(status)
}

/// Sends a request to the service, and prints the reply.
func ask(_ arguments: [String]) throws(PortError) {
    let service = try PortNameServer.shared.lookUp(NoteRequest.portName)
    switch (arguments.first, arguments.dropFirst().first) {
    case ("add", let text?):
        let number: Int = try service.request(text, id: NoteRequest.add)
        print("note \(number)")
    case ("list", nil):
        let reply = try service.request(MachMessage(id: NoteRequest.list))
        for line in try reply.content(as: [String].self) { print(harmless(line)) }
    case ("remove", let number?):
        guard let number = Int(number) else { fail("\(number) is no number", status: EX_USAGE) }
        _ = try service.request(MachMessage(id: NoteRequest.remove, content: number))
    case ("stop", nil):
        _ = try service.request(MachMessage(id: NoteRequest.stop))
    default:
        fail("usage: notes serve | add TEXT | list | remove NUMBER | stop", status: EX_USAGE)
    }
}

do throws(PortError) {
    // A service that several users share has its name in a directory that their group may use.
    if let directory = ProcessInfo.processInfo.environment["NOTES_SHARED_DIRECTORY"] {
        try PortNameServer.setDomain(sharedDirectory: directory)
    }
    if CommandLine.arguments.dropFirst() == ["serve"] {
        try NoteService().run()
    } else {
        try ask(Array(CommandLine.arguments.dropFirst()))
    }
} catch {
    switch error.code {
    case .remoteError: fail(error.remoteText.map(harmless) ?? "\(error)", status: EXIT_FAILURE)
    case .nameUnknown: fail("the service does not run; start it with: notes serve", status: EX_UNAVAILABLE)
    default: fail("\(error)", status: EX_IOERR)
    }
}
