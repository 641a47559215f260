// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Listings 3-17 to 3-19: the main thread gives a worker the name of its port; the worker checks in with the name of its
// own; then each sends to the other's port.

import Foundation
import NamedPortServer

let kCheckinMessage: Int32 = 100
let kWorkMessage: Int32 = 101
let kLeaveMessage: Int32 = 102
let kDoneMessage: Int32 = 103

let activeThreads = ActiveThreads()

/// The ports of the workers that have checked in. Only the main thread uses them.
struct ActiveThreads: Sendable {
    private let ports = LoopBound<[RemoteMessagePort]>([])

    func addPortToList(_ port: RemoteMessagePort) {
        ports.value.append(port)
    }

    /// A request to the worker, and its reply.
    func giveWork() throws {
        for port in ports.value {
            let reply = try port.request(MachMessage(id: kWorkMessage, text: "six times seven"))
            print("main: the reply of \(port.name): \(reply.text)")
        }
    }

    func dismiss() throws {
        for port in ports.value { try port.send(MachMessage(id: kLeaveMessage)) }
    }
}

/// Listing 3-17: attaching a message port to a new thread.
func mySpawnThread() throws -> LocalMessagePort {
    // Create a local port for receiving responses.
    let myPortName = "com.myapp.MainThread"
    let myPort = try LocalMessagePort(name: myPortName, handler: mainThreadResponseHandler)

    // Add the source to the current run loop, which retains the port.
    try myPort.schedule()

    // Create the thread and continue processing.
    let taskID = 1
    Thread.detachNewThread {
        do {
            try serverThreadEntryPoint(myPortName, taskID: taskID)
        } catch {
            print("worker: \(error)")
        }
        ThreadRunLoop.main.stop()
    }
    return myPort
}

/// Listing 3-18: the main thread's handler.
@Sendable func mainThreadResponseHandler(_ local: LocalMessagePort, _ message: MachMessage) -> [UInt8]? {
    do {
        if message.id == kCheckinMessage {
            let threadPortName = message.text
            print("main: message \(message.id): \(threadPortName) has checked in")

            // You must obtain a remote message port by name.
            let messagePort = try RemoteMessagePort(name: threadPortName)

            // Save the thread's comm port for future reference.
            activeThreads.addPortToList(messagePort)
            try activeThreads.giveWork()
        } else {
            // Process other messages.
            print("main: message \(message.id): \(message.text)")
            try activeThreads.dismiss()
        }
    } catch {
        print("main: \(error)")
    }
    return nil
}

/// Listing 3-19: setting up the thread structures.
func serverThreadEntryPoint(_ portName: String, taskID: Int) throws {
    // Create the remote port to the main thread.
    let mainThreadPort = try RemoteMessagePort(name: portName)

    // Create a port for the worker thread.
    let myPortName = "com.MyApp.Thread-\(taskID)"

    // Store the port to the main thread in this thread's handler for later reference.
    let myPort = try LocalMessagePort(name: myPortName) { local, message in
        processClientRequest(local, message, mainThreadPort)
    }

    // Add the source to the current run loop.
    try myPort.schedule()

    // Package up the port name and send the check-in message.
    print("worker: checks in with the name of its port")
    try mainThreadPort.send(MachMessage(id: kCheckinMessage, text: myPortName))

    // Enter the run loop.
    let result = ThreadRunLoop.current.run()
    print("worker: the run returned: \(result)")
}

/// What the chapter leaves to the reader: the worker's handler.
func processClientRequest(
    _ local: LocalMessagePort, _ message: MachMessage, _ mainThreadPort: RemoteMessagePort
) -> [UInt8]? {
    if message.id == kLeaveMessage {
        print("worker: message \(message.id): leaves")
        local.invalidate()  // nothing is left in the run loop, so it returns
        return nil
    }
    print("worker: message \(message.id): \(message.text)")
    do {
        // The other direction: a message of its own, besides the reply.
        try mainThreadPort.send(MachMessage(id: kDoneMessage, text: "\(local.name ?? "a port") has done its work"))
    } catch {
        print("worker: \(error)")
    }
    return Array("42".utf8)
}

do {
    let myPort = try mySpawnThread()
    ThreadRunLoop.main.run()
    myPort.invalidate()
} catch {
    FileHandle.standardError.write(Data("listing-3-17: \(error)\n".utf8))
    exit(1)
}
