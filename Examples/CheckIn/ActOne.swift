// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Act 1: listings 3-12 to 3-15, step by step and with their names. The main thread makes a port, puts it on its run
// loop and launches a worker thread with it. The worker makes a port of its own and checks in with it. From then on
// each side sends to the other's port.

import Foundation
import NamedPortServer
import Synchronization

func actOne(_ files: [InputFile]) throws {
    Transcript.line("act 1: a worker thread that was given the main thread's port")
    let main = MainThread(files)
    try main.launchThread()
    ThreadRunLoop.current.run(for: timeout)
    try main.finish()
}

/// The main thread's side.
private final class MainThread: Sendable {
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
        let runLoop = ThreadRunLoop.current
        let myPort = MachPort()
        // This object handles incoming port messages.
        myPort.setHandler { port, message in
            do {
                try self.handlePortMessage(message, at: port)
            } catch {
                self.state.withLock { $0.failure = error }
                runLoop.stop()
            }
        }
        // Install the port as an input source on the current run loop.
        try runLoop.add(myPort, forMode: .default)
        Transcript.note("main", "launches a worker with its port")
        // Detach the thread.
        Thread.detachNewThread { [right = myPort.makeSendRight()] in
            MyWorkerClass.launchThreadWithPort(right)
            self.workerLeft.signal()
        }
    }

    /// Listing 3-13.
    private func handlePortMessage(_ message: MachMessage, at port: MachPort) throws {
        if message.id == kCheckinMessage {
            // Get the worker thread's communications port, and save it for later use.
            guard let distantPort = message.replyPort else { throw Failure("the worker checked in without a port") }
            Transcript.note("main", "got message \(message.id), keeps the worker's port")
            try storeDistantPort(distantPort, goingWith: port)
        } else {
            // Handle other messages.
            guard let counts = Counts(text: message.text) else { throw Failure("the worker sent no counts") }
            Transcript.note("main", "got message \(message.id): \(message.text)")
            state.withLock { $0.table.add(counts, $0.rest.removeFirst().name) }
        }
        try useDistantPort()
    }

    /// Stores the worker's port; when that is gone, the run of the main loop is over.
    private func storeDistantPort(_ distantPort: SendRight, goingWith port: MachPort) throws {
        let runLoop = ThreadRunLoop.current
        state.withLock { $0.distantPort = distantPort }
        try distantPort.notifyWhenDead { _ in
            port.invalidate()
            runLoop.stop()
        }
    }

    /// Has the next file counted, or dismisses the worker.
    private func useDistantPort() throws {
        let (file, distantPort) = state.withLock { ($0.rest.first, $0.distantPort) }
        if let file {
            Transcript.note("main", "sends message \(MessageID.count): \(file.name)")
            try distantPort?.send(MachMessage(id: MessageID.count, bytes: file.bytes), within: timeout)
        } else {
            Transcript.note("main", "sends message \(MessageID.leave)")
            try distantPort?.send(MachMessage(id: MessageID.leave), within: timeout)
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
private final class MyWorkerClass: Sendable {
    private struct State {
        var remotePort: SendRight?
        var shouldExit = false
    }

    private let state = Mutex(State())

    private var shouldExit: Bool { state.withLock { $0.shouldExit } }

    /// Listing 3-14.
    static func launchThreadWithPort(_ distantPort: SendRight) {
        // Set up the connection between this thread and the main thread.
        let workerObject = MyWorkerClass()
        do {
            try workerObject.sendCheckinMessage(distantPort)
            // Let the run loop process things.
            repeat {
                ThreadRunLoop.current.run(mode: .default, until: .distantFuture, returnAfterSourceHandled: true)
            } while !workerObject.shouldExit
        } catch {
            Transcript.note("worker", "\(error)")
        }
    }

    /// Listing 3-15.
    private func sendCheckinMessage(_ outPort: SendRight) throws {
        // Save the remote port for future use.
        state.withLock { $0.remotePort = outPort }
        // Create and configure the worker thread port.
        let myPort = MachPort { port, message in self.handlePortMessage(message, at: port) }
        try ThreadRunLoop.current.add(myPort, forMode: .default)
        Transcript.note("worker", "checks in with message \(kCheckinMessage) and its own port")
        // Create the check-in message, and send it immediately.
        let message = MachMessage(id: kCheckinMessage, replyPort: myPort.makeSendRight())
        try outPort.send(message, within: timeout)
    }

    private func handlePortMessage(_ message: MachMessage, at port: MachPort) {
        switch message.id {
        case MessageID.count:
            let counts = Counts(of: message.bytes)
            Transcript.note("worker", "got message \(message.id), replies with message \(MessageID.counted)")
            let remotePort = state.withLock { $0.remotePort }
            do {
                try remotePort?.send(MachMessage(id: MessageID.counted, text: counts.text), within: timeout)
            } catch {
                leave("the worker's reply: \(error)")
            }
        default:
            Transcript.note("worker", "got message \(message.id), leaves")
            port.invalidate()
            state.withLock { $0.shouldExit = true }
        }
    }
}
