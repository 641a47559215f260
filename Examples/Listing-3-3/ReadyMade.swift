// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import RunLoopCore

/// The same with `CommandSource`, which contains the buffer, the registration and the removal.
func startReadyMade() {
    let main = ThreadRunLoop.current
    Thread.detachNewThread {
        let source = CommandSource<(command: Int, data: String)> { source, commands in
            for (command, data) in commands {
                print("worker: command \(command): \(data)")
                if command == kQuitCommand { source.invalidate() }
            }
        }
        source.addClient(
            on: main, removalLimit: .seconds(10),
            registered: { context in
                print("main: registered a source")
                let commands = [(1, "sort the letters"), (2, "stamp them"), (kQuitCommand, "go home")]
                for command in commands where context.source.add(command) != .accepted {
                    print("main: the buffer is full, or the source is gone")
                }
                context.source.fire()
            },
            removed: { _ in print("main: removed a source") })
        source.add(to: .current)
        let result = ThreadRunLoop.current.run()
        print("worker: the run returned: \(result)")
        main.stop()
    }
}
