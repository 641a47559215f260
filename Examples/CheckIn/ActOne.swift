// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Act 1: listings 3-12 to 3-15. The main thread makes a port, puts it on its run loop and launches a worker thread with it.
// The worker makes a port of its own and checks in with it. From then on each side sends to the other's port.

import Foundation
import NamedPortServer
import Synchronization

func actOne(_ files: [InputFile]) throws {
    Transcript.line("act 1: a worker thread that was given the main thread's port")
    let boss = Boss(files)
    try boss.launchThread()
    ThreadRunLoop.current.run(for: patience)
    try boss.finish()
}

/// The main thread's side.
private final class Boss: Sendable {
    private struct State {
        var rest: ArraySlice<InputFile>
        var table: Table
        var distantPort: SendRight?
        var failure: (any Error)?
        var isDone = false
    }

    private let state: Mutex<State>
    private let workerLeft = DispatchSemaphore(value: 0)

    init(_ files: [InputFile]) {
        state = Mutex(State(rest: files[...], table: Table(for: files)))
    }

    /// Listing 3-12.
    func launchThread() throws {
        let loop = ThreadRunLoop.current
        let myPort = MachPort { port, message in
            do {
                try self.handle(message, at: port)
            } catch {
                self.state.withLock { $0.failure = error }
                loop.stop()
            }
        }
        try loop.add(myPort, forMode: .default)
        Transcript.note("main", "launches a worker with its port")
        Thread.detachNewThread { [right = myPort.makeSendRight()] in
            WorkerClass.launchThread(withPort: right)
            self.workerLeft.signal()
        }
    }

    /// Listing 3-13.
    private func handle(_ message: MachMessage, at port: MachPort) throws {
        switch message.id {
        case MessageID.checkIn:
            guard let distantPort = message.replyPort else { throw Failure("the worker checked in without a port") }
            Transcript.note("main", "got message \(message.id), keeps the worker's port")
            state.withLock { $0.distantPort = distantPort }
            try distantPort.notifyWhenDead {
                port.invalidate()
                ThreadRunLoop.current.stop()
            }
        case MessageID.counted:
            guard let counts = Counts(text: message.text) else { throw Failure("the worker sent no counts") }
            Transcript.note("main", "got message \(message.id): \(message.text)")
            state.withLock { $0.table.add(counts, $0.rest.removeFirst().name) }
        default:
            throw Failure("unexpected message \(message.id)")
        }
        try sendNext(replyingTo: port)
    }

    private func sendNext(replyingTo port: MachPort) throws {
        let (file, distantPort) = state.withLock { ($0.rest.first, $0.distantPort) }
        if let file {
            Transcript.note("main", "sends message \(MessageID.count): \(file.name)")
            let message = MachMessage(id: MessageID.count, bytes: file.bytes, replyPort: port.makeSendRight())
            try distantPort?.send(message, within: patience)
        } else {
            Transcript.note("main", "sends message \(MessageID.leave)")
            try distantPort?.send(MachMessage(id: MessageID.leave), within: patience)
            state.withLock { $0.isDone = true }
        }
    }

    /// The worker has left, or something went wrong.
    func finish() throws {
        let (failure, isDone, table) = state.withLock { ($0.failure, $0.isDone, $0.table) }
        if let failure { throw failure }
        guard isDone, workerLeft.wait(timeout: .now() + .seconds(30)) == .success else {
            throw Failure("the worker thread ended before its work was done")
        }
        Transcript.note("main", "the worker thread has ended")
        table.print()
    }
}

/// The worker thread's side.
private enum WorkerClass {
    /// Listing 3-14.
    static func launchThread(withPort distantPort: SendRight) {
        do {
            try sendCheckIn(to: distantPort)
            ThreadRunLoop.current.run()
        } catch {
            Transcript.note("worker", "\(error)")
        }
    }

    /// Listing 3-15.
    private static func sendCheckIn(to distantPort: SendRight) throws {
        let myPort = MachPort { port, message in
            switch message.id {
            case MessageID.count:
                let counts = Counts(of: message.bytes)
                Transcript.note("worker", "got message \(message.id), replies with message \(MessageID.counted)")
                try? message.replyPort?.send(MachMessage(id: MessageID.counted, text: counts.text), within: patience)
            default:
                Transcript.note("worker", "got message \(message.id), leaves")
                port.invalidate()  // nothing is left in the run loop, so it returns
            }
        }
        try ThreadRunLoop.current.add(myPort, forMode: .default)
        Transcript.note("worker", "checks in with message \(MessageID.checkIn) and its own port")
        try distantPort.send(
            MachMessage(id: MessageID.checkIn, replyPort: myPort.makeSendRight()), within: patience)
    }
}
