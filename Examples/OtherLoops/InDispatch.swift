// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Dispatch
import MessagePort

/// A dispatch queue calls the port's handler.
func inDispatch() throws {
    let queue = DispatchQueue(label: "org.example.loops")
    let done = DispatchSemaphore(value: 0)
    let port = MachPort { port, message in
        dispatchPrecondition(condition: .onQueue(queue))
        print("dispatch queue: \(message.text)")
        if isLast(message) {
            port.invalidate()
            done.signal()
        }
    }
    try port.setDispatcher { queue.async(execute: $0) }
    sendMessages(to: port)
    done.wait()
}
