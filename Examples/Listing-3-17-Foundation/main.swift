// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Listings 3-17 to 3-19 with CFMessagePort on CFRunLoop: the main thread gives a worker the name of its port; the worker
// checks in with the name of its own; then each sends to the other's port.

import Foundation
import FoundationPorts

let kCheckinMessage: Int32 = 100
let kWorkMessage: Int32 = 101
let kLeaveMessage: Int32 = 102
let kDoneMessage: Int32 = 103

/// Listing 3-17: attaching a message port to a new thread.
func mySpawnThread() {
    // Create a local port for receiving responses.
    let myPortName = "com.myapp.MainThread" as CFString
    var context = CFMessagePortContext()
    var shouldFreeInfo: DarwinBoolean = false

    // Create the port.
    let myPort = CFMessagePortCreateLocal(nil, myPortName, mainThreadResponseHandler, &context, &shouldFreeInfo)

    if myPort != nil {
        // The port was successfully created. Now create a run loop source for it.
        let rlSource = CFMessagePortCreateRunLoopSource(nil, myPort, 0)
        if rlSource != nil {
            // Add the source to the current run loop, which keeps the port.
            CFRunLoopAddSource(CFRunLoopGetCurrent(), rlSource, .defaultMode)
        }
    }

    // Create the thread and continue processing.
    Thread.detachNewThread { serverThreadEntryPoint("com.myapp.MainThread", taskID: 1) }
}

/// The chapter's list of active threads. Only the main thread uses it.
nonisolated(unsafe) var activeThreads: [CFMessagePort] = []

/// Listing 3-18: the main thread's port message handler.
@Sendable func mainThreadResponseHandler(
    _ local: CFMessagePort?, _ msgid: Int32, _ data: CFData?, _ info: UnsafeMutableRawPointer?
) -> Unmanaged<CFData>? {
    if msgid == kCheckinMessage {
        let threadPortName = text(of: data)
        print("main: message \(msgid): \(threadPortName) has checked in")

        // You must obtain a remote message port by name.
        if let messagePort = CFMessagePortCreateRemote(nil, threadPortName as CFString) {
            // Save the thread's comm port for future reference.
            activeThreads.append(messagePort)
            giveWork()
        }
    } else {
        // Process other messages.
        print("main: message \(msgid): \(text(of: data))")
        for port in activeThreads { CFMessagePortSendRequest(port, kLeaveMessage, nil, 10, 0, nil, nil) }
        CFMessagePortInvalidate(local)
    }
    return nil
}

/// A request to each worker, and its reply. In a mode of its own nothing else runs meanwhile.
func giveWork() {
    for port in activeThreads {
        var returnData: Unmanaged<CFData>?
        let status = CFMessagePortSendRequest(
            port, kWorkMessage, Data("six times seven".utf8) as CFData, 10, 10,
            "com.myapp.reply" as CFString, &returnData)
        if status == kCFMessagePortSuccess, let reply = returnData?.takeRetainedValue() {
            print("main: the reply of \(CFMessagePortGetName(port) as String): \(text(of: reply))")
        } else {
            print("main: status \(status)")
        }
    }
}

/// Listing 3-19: setting up the thread structures.
func serverThreadEntryPoint(_ portName: String, taskID: Int) {
    // Create the remote port to the main thread.
    let mainThreadPort = CFMessagePortCreateRemote(nil, portName as CFString)

    // Create a port for the worker thread.
    let myPortName = "com.MyApp.Thread-\(taskID)"

    // Store the port in this thread's context info for later reference.
    var context = CFMessagePortContext()
    context.info = mainThreadPort.map { Unmanaged.passRetained($0).toOpaque() }
    context.release = { info in info.map { Unmanaged<CFMessagePort>.fromOpaque($0).release() } }
    var shouldFreeInfo: DarwinBoolean = false

    let myPort = CFMessagePortCreateLocal(
        nil, myPortName as CFString, processClientRequest, &context, &shouldFreeInfo)
    if shouldFreeInfo.boolValue {
        // Couldn't create a local port, so kill the thread.
        return
    }
    guard let rlSource = CFMessagePortCreateRunLoopSource(nil, myPort, 0) else {
        // Couldn't create a source, so kill the thread.
        return
    }

    // Add the source to the current run loop.
    CFRunLoopAddSource(CFRunLoopGetCurrent(), rlSource, .defaultMode)

    // Package up the port name and send the check-in message.
    print("worker: checks in with the name of its port")
    let outData = myPortName.data(using: .ascii) as CFData?
    CFMessagePortSendRequest(mainThreadPort, kCheckinMessage, outData, 0.1, 0.0, nil, nil)

    // Enter the run loop.
    CFRunLoopRun()
    print("worker: the run returned")
    CFRunLoopPerformBlock(CFRunLoopGetMain(), CFRunLoopMode.defaultMode.rawValue) {
        CFRunLoopStop(CFRunLoopGetMain())
    }
    CFRunLoopWakeUp(CFRunLoopGetMain())
}

/// What the chapter leaves to the reader: the worker's handler.
@Sendable func processClientRequest(
    _ local: CFMessagePort?, _ msgid: Int32, _ data: CFData?, _ info: UnsafeMutableRawPointer?
) -> Unmanaged<CFData>? {
    if msgid == kLeaveMessage {
        print("worker: message \(msgid): leaves")
        CFMessagePortInvalidate(local)  // nothing is left in the run loop, so it returns
        return nil
    }
    print("worker: message \(msgid): \(text(of: data))")

    // The other direction: a message of its own, besides the reply.
    if let info {
        let mainThreadPort = Unmanaged<CFMessagePort>.fromOpaque(info).takeUnretainedValue()
        let done = "\(CFMessagePortGetName(local) as String) has done its work"
        CFMessagePortSendRequest(mainThreadPort, kDoneMessage, Data(done.utf8) as CFData, 10, 0, nil, nil)
    }
    return Unmanaged.passRetained(Data("42".utf8) as CFData)
}

func text(of data: CFData?) -> String { String(decoding: (data as Data?) ?? Data(), as: UTF8.self) }

mySpawnThread()
CFRunLoopRun()
