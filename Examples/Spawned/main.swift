// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A program that Foundation's Process starts, and that checks in as a worker does. The program launches itself.

import Foundation
import MessagePort

/// The messages to the program that was started.
enum Request {
    /// A text; the reply is the text in capitals.
    static let shout: Int32 = 1
    static let leave: Int32 = 2
}

struct Failure: Error, CustomStringConvertible {
    let description: String
}

/// The side that starts the other.
func launch() throws {
    let port = MachPort()
    let bootstrap = try PortBootstrap(to: port)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/proc/self/exe")
    // Process passes on standard input, output and error, and no other descriptor.
    process.standardInput = FileHandle(fileDescriptor: bootstrap.descriptor)
    process.environment = bootstrap.environment(inheritedAs: 0).merging(ProcessInfo.processInfo.environment) { $1 }
    try process.run()
    try bootstrap.connect(process: process.processIdentifier)

    guard let checkIn = try port.receive(within: .seconds(10)), let program = checkIn.replyPort else {
        throw Failure(description: "the program did not check in")
    }
    let isIt = checkIn.sender.processID == process.processIdentifier
    print("message \(checkIn.id) came from \(isIt ? "the process that Foundation started" : "another process")")
    let reply = try program.request(MachMessage(id: Request.shout, text: "hello"))
    print("it answers: \(reply.text)")
    try program.send(MachMessage(id: Request.leave), within: .seconds(10))
    process.waitUntilExit()
    print("it exited with status \(process.terminationStatus), and the right to its port is dead: \(program.isDead)")
    port.invalidate()
}

/// The program that is started.
func serve(_ launcher: SendRight) throws {
    let loop = ThreadRunLoop.main
    let port = MachPort { _, message in
        switch message.id {
        case Request.shout: try? message.reply(MachMessage(text: message.text.uppercased()))
        default: loop.stop()
        }
    }
    try port.schedule(on: loop)
    try launcher.notifyWhenDead(on: loop) { _ in loop.stop() }
    try launcher.checkIn(port)
    loop.run()
    port.invalidate()
}

do {
    if let launcher = try SendRight.bootstrap() { try serve(launcher) } else { try launch() }
} catch {
    FileHandle.standardError.write(Data("spawned: \(error)\n".utf8))
    exit(1)
}
