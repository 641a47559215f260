// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// handover serve VERSION   answers with its version, until another version takes over, or it is to stop
// handover ask             asks without a pause, until the next version has answered a thousand times

import Foundation
import NamedPortServer

let portName = "org.example.handover"

/// Prints a line at once, also into a pipe.
func say(_ text: String) {
    print(text)
    fflush(nil)
}

/// Takes over from the version before, if `portctl handover` has started this one for that.
func makePort(_ version: String) throws(PortError) -> LocalMessagePort {
    let answer: LocalMessagePort.Handler = { _, message in
        if message.text == "stop" { ThreadRunLoop.main.stop() }
        return Array(version.utf8)
    }
    if let launcher = try SendRight.bootstrap() {
        return try LocalMessagePort(takingOverFrom: launcher, handler: answer)
    }
    return try LocalMessagePort(name: portName, handler: answer)
}

func serve(_ version: String) throws(PortError) {
    let port = try makePort(version)
    // Off at first: this lets any program of the user replace the service.
    port.setAllowsHandOver(true) { ThreadRunLoop.main.stop() }
    try port.schedule()
    say("version \(version) serves")
    ThreadRunLoop.main.run()
    say("version \(version) ends")
    port.invalidate()
}

func ask() throws(PortError) {
    let service = try RemoteMessagePort(name: portName)
    var (counts, errorCount): ([String: Int], Int) = ([:], 0)
    var versions: [String] = []
    while versions.count < 2 || counts[versions[1], default: 0] < 1000 {
        do throws(PortError) {
            let version = try service.request(MachMessage(text: "which version?")).text
            counts[version, default: 0] += 1
            if !versions.contains(version) {
                versions.append(version)
                say("version \(version) answers")
            }
        } catch {
            errorCount += 1
            say("\(error)")
            if service.right.isDead { break }
        }
    }
    let total = counts.values.reduce(0, +)
    say("about \(total) answers, and \(errorCount == 0 ? "no error" : "\(errorCount) errors")")
    _ = try service.request(MachMessage(text: "stop"))
}

do {
    let words = CommandLine.arguments.dropFirst()
    switch (words.first, words.dropFirst().first) {
    case ("serve", let version?): try serve(version)
    case ("ask", nil): try ask()
    default:
        FileHandle.standardError.write(Data("usage: handover serve VERSION | handover ask\n".utf8))
        exit(EX_USAGE)
    }
} catch {
    FileHandle.standardError.write(Data("handover: \(error)\n".utf8))
    exit(1)
}
