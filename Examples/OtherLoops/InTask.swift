// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort

/// A task receives the messages, one after the other, and blocks no thread while it waits.
func inTask() throws {
    let port = MachPort()
    let main = ThreadRunLoop.current
    Task {
        do {
            for try await message in port.messages {
                print("task: \(message.text)")
                if isLast(message) { port.invalidate() }
            }
        } catch {
            print("task: \(error)")
        }
        main.stop()
    }
    sendMessages(to: port)
    main.run()
}
