// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Listings 3-12 to 3-16 on Foundation's run loop: the main thread launches a worker with its port; the worker checks in
// with a port of its own; then each sends to the other's port. At the end a port gets a name.

import Foundation
import FoundationPorts

let kCheckinMessage: UInt32 = 100
let kWorkMessage: UInt32 = 101
let kDoneMessage: UInt32 = 102

/// The main thread's side.
final class MyMainThread: NSObject, NSMachPortDelegate {
    private(set) var isDone = false
    private var distantPort: Port?

    /// Listing 3-12.
    func launchThread() {
        let myPort = NSMachPort()

        // This class handles incoming port messages.
        myPort.setDelegate(self)

        // Install the port as an input source on the current run loop.
        RunLoop.current.add(myPort, forMode: .default)

        // Detach the thread.
        Thread.detachNewThread { MyWorkerClass.launchThreadWithPort(myPort) }
    }

    /// Listing 3-13.
    func handle(_ portMessage: PortMessage) {
        if portMessage.msgid == kCheckinMessage {
            // Get the worker thread's communications port, and save it for later use.
            storeDistantPort(portMessage.sendPort)
        } else {
            // Handle other messages.
            print("main: message \(portMessage.msgid): \(text(of: portMessage))")
            portMessage.receivePort?.invalidate()
            isDone = true
        }
    }

    private func storeDistantPort(_ port: Port?) {
        print("main: message \(kCheckinMessage): the worker has checked in, and gets work")
        distantPort = port
        let work = PortMessage(send: port, receive: nil, components: [Data("six times seven".utf8)])
        work.msgid = kWorkMessage
        if !work.send(before: Date(timeIntervalSinceNow: 10)) { print("main: the worker cannot be reached") }
    }
}

/// The worker's side.
final class MyWorkerClass: NSObject, NSMachPortDelegate {
    private var remotePort: Port?
    private var shouldExit = false

    /// Listing 3-14.
    static func launchThreadWithPort(_ distantPort: Port) {
        autoreleasepool {
            // Set up the connection between this thread and the main thread.
            let workerObj = MyWorkerClass()
            workerObj.sendCheckinMessage(distantPort)

            // Let the run loop process things.
            repeat {
                _ = RunLoop.current.run(mode: .default, before: .distantFuture)
            } while !workerObj.shouldExit
        }
    }

    /// Listing 3-15.
    private func sendCheckinMessage(_ outPort: Port) {
        // Save the remote port for future use.
        remotePort = outPort

        // Create and configure the worker thread port.
        let myPort = NSMachPort()
        myPort.setDelegate(self)
        RunLoop.current.add(myPort, forMode: .default)

        // Create the check-in message.
        let messageObj = PortMessage(send: outPort, receive: myPort, components: nil)

        // Finish configuring the message and send it immediately.
        print("worker: checks in")
        messageObj.msgid = kCheckinMessage
        if !messageObj.send(before: Date()) { print("worker: the main thread cannot be reached") }
    }

    func handle(_ portMessage: PortMessage) {
        print("worker: message \(portMessage.msgid): \(text(of: portMessage))")
        let answer = PortMessage(send: remotePort, receive: nil, components: [Data("42".utf8)])
        answer.msgid = kDoneMessage
        if !answer.send(before: Date(timeIntervalSinceNow: 10)) { print("worker: the answer cannot be sent") }
        portMessage.receivePort?.invalidate()
        shouldExit = true
    }
}

/// Has a port with a name.
final class MyNamedPort: NSObject, PortDelegate {
    private(set) var hasReceived = false

    /// Listing 3-16.
    func registerPort() {
        let localPort = NSMessagePort()

        // Configure the object and add it to the current run loop.
        localPort.setDelegate(self)
        RunLoop.current.add(localPort, forMode: .default)

        // Register the port using a specific name. The name must be unique.
        let localPortName = "MyPortName"
        NSMessagePortNameServer.shared.registerPort(localPort, name: localPortName)

        // The chapter's next sentence: a thread that has the name gets the port by it.
        Thread.detachNewThread {
            let remotePort = NSMessagePortNameServer.shared.port(forName: localPortName)
            print("another thread: found \(localPortName)")
            let message = PortMessage(
                send: remotePort, receive: nil, components: [Data("I found you by your name.".utf8)])
            message.msgid = 1
            if !message.send(before: Date(timeIntervalSinceNow: 10)) { print("another thread: no room") }
        }
    }

    func handle(_ message: PortMessage) {
        print("main: message \(message.msgid): \(text(of: message))")
        message.receivePort?.invalidate()
        hasReceived = true
    }
}

func text(of message: PortMessage) -> String {
    message.components?.compactMap { $0 as? Data }.first.map { String(decoding: $0, as: UTF8.self) } ?? ""
}

let mainThread = MyMainThread()
mainThread.launchThread()
while !mainThread.isDone, RunLoop.current.run(mode: .default, before: .distantFuture) {}

let namedPort = MyNamedPort()
namedPort.registerPort()
while !namedPort.hasReceived, RunLoop.current.run(mode: .default, before: .distantFuture) {}
if NSMessagePortNameServer.shared.port(forName: "MyPortName") == nil { print("main: the name went with its port") }
