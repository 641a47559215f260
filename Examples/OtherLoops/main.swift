// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A port served by something other than this library's run loop: a dispatch queue, Foundation's run loop, a task.

import Foundation
import MessagePort

/// Sends the messages of this example from another thread, one after the other.
func sendMessages(to port: MachPort) {
    Thread.detachNewThread { [right = port.makeSendRight()] in
        do {
            for text in ["one", "two", "three"] {
                try right.send(MachMessage(text: text), within: .seconds(10))
            }
        } catch {
            FileHandle.standardError.write(Data("loops: \(error)\n".utf8))
            exit(1)
        }
    }
}

/// Whether this is the last message.
func isLast(_ message: MachMessage) -> Bool { message.text == "three" }

do {
    try inDispatch()
    try inFoundation()
    try inTask()
} catch {
    FileHandle.standardError.write(Data("loops: \(error)\n".utf8))
    exit(1)
}
