// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// The code in the comments of declarations, in `Sources`. It is compiled, not run.

import Foundation
import NamedPortServer

func commentOnNameEvents() async throws {
    for try await event in PortNameServer.shared.events { print(event) }
}

struct Order: MessageContent {
    var number: UInt32
    var note: String?

    init(from reader: inout MessageReader) throws(PortError) {
        number = try reader.read()
        note = try reader.read()
    }

    func write(to writer: inout MessageWriter) {
        writer.write(number)
        writer.write(note)
    }
}

func commentOnFlushing(_ port: MachPort) -> Never {
    port.invalidate()
    if !MachPort.flushReplies(within: .seconds(5)) { print("a requester does not read its reply") }
    exit(0)
}

func commentOnMessages(_ port: MachPort, answer: (_ message: MachMessage) -> String) async throws {
    for try await message in port.messages {
        try message.reply(content: answer(message))
    }
}

func commentOnDispatcher(_ port: MachPort, queue: DispatchQueue) throws {
    try port.setDispatcher { queue.async(execute: $0) }
}

func commentOnBootstrap(_ port: MachPort, process: Process) throws {
    let bootstrap = try PortBootstrap(to: port)
    process.standardInput = FileHandle(fileDescriptor: bootstrap.descriptor)
    process.environment = bootstrap.environment(inheritedAs: 0).merging(ProcessInfo.processInfo.environment) { $1 }
    try process.run()
    try bootstrap.connect(process: process.processIdentifier)
}

func commentOnCommandSource(_ known: KnownSources) {
    let source = CommandSource<String> { source, commands in
        for command in commands { print(command) }
    }
    source.addClient(on: .main, registered: { known.insert($0) }, removed: { known.remove($0) })
    source.add(to: .current)
}

/// The sources that a client was notified of.
struct KnownSources: Sendable {
    private let contexts = LoopBound<Set<CommandSource<String>.Context>>([])

    func insert(_ context: CommandSource<String>.Context) { contexts.value.insert(context) }

    func remove(_ context: CommandSource<String>.Context) { contexts.value.remove(context) }
}

func commentOnTakingOver(answer: @escaping LocalMessagePort.Handler) throws -> LocalMessagePort {
    let port =
        if let launcher = try SendRight.bootstrap() {
            try LocalMessagePort(takingOverFrom: launcher, handler: answer)
        } else {
            try LocalMessagePort(name: "org.example.service", handler: answer)
        }
    return port
}

func commentOnPool(_ right: SendRight, camera: Camera) throws {
    let pool = MemoryPool()
    var loan = try pool.loan(3_000_000)
    loan.withBytes { bytes in camera.fill(&bytes) }
    try right.send(MachMessage(id: 7, memory: loan.freeze()), within: .seconds(1))
}

/// Fills memory with a picture.
struct Camera {
    func fill(_ bytes: inout MutableRawSpan) { bytes.storeBytes(of: 1, toByteOffset: 0, as: UInt8.self) }
}
