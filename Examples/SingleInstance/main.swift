// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// single [DOCUMENT ...] [--quit]
//
// An application of which one instance runs at a time. A later launch sends its arguments to the first, which opens the
// documents. With --quit it ends the first; where none runs it reports that, and does not become the first.

import Foundation
import NamedPortServer

let portName = "org.example.single"

/// Prints a line at once, also into a pipe.
func say(_ text: String) {
    print("process \(getpid()): \(text)")
    fflush(nil)
}

func open(_ launch: Launch, for whom: String = "") {
    let directory = URL(fileURLWithPath: launch.directory)
    for document in launch.documents {
        say("opens \(URL(fileURLWithPath: document, relativeTo: directory).lastPathComponent)\(whom)")
    }
}

/// Runs the application, unless another instance has the name.
///
/// - Returns: false when another has it.
func becomeFirst(_ launch: Launch) throws -> Bool {
    let door: LocalMessagePort
    do throws(PortError) {
        door = try LocalMessagePort(name: portName) { _, message in
            do throws(PortError) {
                let launch: Launch = try message.content()
                let sender = "process \(message.sender.processID)"
                open(launch, for: ", for \(sender)")
                if launch.quits {
                    say("quits, for \(sender)")
                    ThreadRunLoop.main.stop()
                }
            } catch {
                try? message.replyError(1, "\(error)")
            }
            return nil
        }
    } catch {
        if error.code == .nameTaken { return false }
        throw error
    }
    say("is the first instance")
    open(launch)
    try door.schedule()
    ThreadRunLoop.main.run()
    door.invalidate()
    return true
}

/// Sends this launch's arguments to the first instance.
///
/// - Returns: false when the first instance has just gone.
func handOver(_ launch: Launch) throws(PortError) -> Bool {
    do throws(PortError) {
        let first = try RemoteMessagePort(name: portName)
        let reply = try first.request(MachMessage(content: launch))
        let outcome = launch.quits ? "quits" : "opens \(launch.documents.joined(separator: ", "))"
        say("process \(reply.sender.processID) runs already, and \(outcome)")
        return true
    } catch {
        if [.nameUnknown, .deadName, .peerDied].contains(error.code) { return false }
        throw error
    }
}

do {
    let launch = Launch(
        directory: FileManager.default.currentDirectoryPath, arguments: Array(CommandLine.arguments.dropFirst()))
    if launch.quits {
        if try !handOver(launch) {
            FileHandle.standardError.write(Data("single: no instance runs\n".utf8))
            exit(EX_UNAVAILABLE)
        }
    } else {
        // Both fail when the first instance ends in between: then this launch tries to be the first again.
        while try !becomeFirst(launch) && !handOver(launch) {}
    }
} catch {
    FileHandle.standardError.write(Data("single: \(error)\n".utf8))
    exit(1)
}
