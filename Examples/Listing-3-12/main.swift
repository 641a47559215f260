// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Listings 3-12 to 3-15: the main thread launches a worker with its port; the worker checks in with a port of its own;
// then each sends to the other's port.

import Foundation
import MessagePort

let kCheckinMessage: Int32 = 100
let kWorkMessage: Int32 = 101
let kDoneMessage: Int32 = 102

/// The main thread's side.
struct MainThread: Sendable {
    private let distantPort = LoopBound<SendRight?>(nil)

    /// Listing 3-12.
    func launchThread() throws {
        // This class handles incoming port messages.
        let myPort = MachPort { port, message in self.handlePortMessage(message, at: port) }

        // Install the port as an input source on the current run loop.
        try ThreadRunLoop.current.add(myPort, forMode: .default)

        // Detach the thread.
        Thread.detachNewThread { [right = myPort.makeSendRight()] in
            MyWorkerClass.launchThreadWithPort(right)
        }
    }

    /// Listing 3-13.
    private func handlePortMessage(_ portMessage: MachMessage, at port: MachPort) {
        if portMessage.id == kCheckinMessage {
            // Get the worker thread's communications port, and save it for later use.
            storeDistantPort(portMessage.replyPort)
        } else {
            // Handle other messages.
            print("main: message \(portMessage.id): \(portMessage.text)")
            port.invalidate()
            ThreadRunLoop.current.stop()
        }
    }

    private func storeDistantPort(_ port: SendRight?) {
        print("main: message \(kCheckinMessage): the worker has checked in, and gets work")
        distantPort.value = port
        do {
            try port?.send(MachMessage(id: kWorkMessage, text: "six times seven"), within: .seconds(10))
        } catch {
            print("main: \(error)")
            ThreadRunLoop.current.stop()
        }
    }
}

/// The worker's side.
final class MyWorkerClass: Sendable {
    private let remotePort = LoopBound<SendRight?>(nil)
    private let shouldExit = LoopBound(false)

    /// Listing 3-14.
    static func launchThreadWithPort(_ distantPort: SendRight) {
        // Set up the connection between this thread and the main thread.
        let workerObject = MyWorkerClass()
        do {
            try workerObject.sendCheckinMessage(distantPort)
        } catch {
            print("worker: \(error)")
            return
        }

        // Let the run loop process things.
        repeat {
            ThreadRunLoop.current.run(mode: .default, until: .distantFuture, returnAfterSourceHandled: true)
        } while !workerObject.shouldExit.value
    }

    /// Listing 3-15.
    private func sendCheckinMessage(_ outPort: SendRight) throws {
        // Save the remote port for future use.
        remotePort.value = outPort

        // Create and configure the worker thread port.
        let myPort = MachPort { port, message in self.handlePortMessage(message, at: port) }
        try ThreadRunLoop.current.add(myPort, forMode: .default)

        // Create the check-in message, and send it immediately.
        print("worker: checks in")
        let message = MachMessage(id: kCheckinMessage, replyPort: myPort.makeSendRight())
        try outPort.send(message, within: .seconds(10))
    }

    private func handlePortMessage(_ portMessage: MachMessage, at port: MachPort) {
        print("worker: message \(portMessage.id): \(portMessage.text)")
        do {
            try remotePort.value?.send(MachMessage(id: kDoneMessage, text: "42"), within: .seconds(10))
        } catch {
            print("worker: \(error)")
        }
        port.invalidate()
        shouldExit.value = true
    }
}

do {
    try MainThread().launchThread()
    ThreadRunLoop.main.run()
} catch {
    FileHandle.standardError.write(Data("listing-3-12: \(error)\n".utf8))
    exit(1)
}
