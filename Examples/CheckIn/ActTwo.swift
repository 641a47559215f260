// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Act 2: listings 3-16 to 3-19. The worker is given the main port's name, looks it up, and checks in with the name of
// its own port. The main thread then sends requests and waits for each reply.

import Foundation
import NamedPortServer
import Synchronization

func actTwo(_ files: [InputFile]) throws {
    Transcript.line("act 2: a worker thread that was given the name of the main thread's port")
    let boss = try NamedBoss(name: "checkin.main.\(getpid())")
    defer { boss.close() }
    let workerLeft = DispatchSemaphore(value: 0)
    Thread.detachNewThread { [name = boss.name] in
        do {
            try namedWorker(mainName: name)
        } catch {
            boss.fail(error)
        }
        workerLeft.signal()
    }
    let table = try boss.countAll(files)
    guard workerLeft.wait(timeout: .now() + .seconds(30)) == .success else {
        throw Failure("the worker thread does not end")
    }
    Transcript.note("main", "the worker thread has ended")
    table.print()
}

/// The main side.
private final class NamedBoss: Sendable {
    private struct State {
        var workerName: String?
        var failure: (any Error)?
    }

    private let port: LocalMessagePort
    private let state = SharedState()
    private let loop = ThreadRunLoop.current

    var name: String { port.name ?? "" }

    private final class SharedState: Sendable {
        let value = Mutex(State())
    }

    /// Listing 3-17, and 3-18 for the handler.
    init(name: String) throws {
        port = try LocalMessagePort(name: name) { [state] _, message in
            guard message.id == MessageID.checkIn else { return nil }
            Transcript.note("main", "got message \(message.id): the worker's port is \(message.text)")
            state.value.withLock { $0.workerName = message.text }
            ThreadRunLoop.current.stop()
            return nil
        }
        try port.schedule()
        Transcript.note("main", "launches a worker with the name of its port")
    }

    /// The worker cannot go on: the wait for its check-in ends.
    func fail(_ error: any Error) {
        state.value.withLock { $0.failure = error }
        loop.stop()
    }

    /// Waits for the check-in, has every file counted, and dismisses the worker.
    func countAll(_ files: [InputFile]) throws -> Table {
        let worker = try waitForCheckIn()
        let table = try count(files) { (request) throws(PortError) in
            try worker.request(request, sendLimit: timeout, replyLimit: timeout)
        }
        Transcript.note("main", "sends message \(MessageID.leave)")
        try worker.send(MachMessage(id: MessageID.leave), sendLimit: timeout)
        return table
    }

    /// Ends the port once the worker has left. Earlier, the worker would conclude that the main thread has gone.
    func close() {
        port.invalidate()
    }

    private func waitForCheckIn() throws -> RemoteMessagePort {
        _ = loop.run(for: timeout)
        let (name, failure) = state.value.withLock { ($0.workerName, $0.failure) }
        if let failure { throw failure }
        guard let name else { throw Failure("the worker did not check in") }
        return try RemoteMessagePort(name: name)
    }
}

/// The worker: listing 3-19.
private func namedWorker(mainName: String) throws {
    let loop = ThreadRunLoop.current
    let mainPort = try RemoteMessagePort(name: mainName)
    try mainPort.setInvalidationHandler { _ in loop.stop() }  // no thread is left to work for
    let myPort = try LocalMessagePort(name: mainName + ".thread") { port, message in
        switch message.id {
        case MessageID.count:
            Transcript.note("worker", "got message \(message.id), replies")
            return Array(Counts(of: message.bytes).text.utf8)
        default:
            Transcript.note("worker", "got message \(message.id), leaves")
            port.invalidate()  // nothing is left in the run loop, so it returns
            return nil
        }
    }
    try myPort.schedule()
    Transcript.note("worker", "checks in with message \(MessageID.checkIn) and the name of its port")
    try mainPort.send(MachMessage(id: MessageID.checkIn, text: myPort.name ?? ""), sendLimit: timeout)
    loop.run()
    mainPort.invalidate()
    if myPort.isValid { throw Failure("the main side is gone") }
}
