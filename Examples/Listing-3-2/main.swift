// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Listing 3-2: the skeleton of a thread that runs its loop repeatedly, and leaves when the loop was stopped or has
// nothing left.

import Foundation
import MessagePort

func skeletonThreadMain(_ port: MachPort) throws {
    var done = false

    // Add your sources or timers to the run loop and do any other setup.
    let runLoop = ThreadRunLoop.current
    try runLoop.add(port, forMode: .default)

    repeat {
        // Start the run loop but return after each source is handled.
        let result = runLoop.run(mode: .default, for: .seconds(10), returnAfterSourceHandled: true)
        print("  the run returned: \(result)")

        // If a source explicitly stopped the run loop, or if there are no sources or timers, go ahead and exit.
        if result == .stopped || result == .finished {
            done = true
        }

        // Check for any other exit conditions here and set the done variable as needed.
    } while !done

    // Clean up code here.
    port.invalidate()
}

/// The source of the skeleton: a port that does what its messages say.
func makePort() -> MachPort {
    MachPort { port, message in
        print("  message: \(message.text)")
        switch message.text {
        case "stop": ThreadRunLoop.current.stop()
        case "remove the source": port.invalidate()
        default: break
        }
    }
}

do {
    for messages in [["work", "work", "stop"], ["work", "remove the source"]] {
        print("a thread that is sent: \(messages.joined(separator: ", "))")
        let port = makePort()
        for text in messages {
            try port.makeSendRight().send(MachMessage(text: text), within: .seconds(1))
        }
        Thread.detachNewThread {
            do {
                try skeletonThreadMain(port)
            } catch {
                print("\(error)")
            }
            ThreadRunLoop.main.stop()
        }
        ThreadRunLoop.main.run()
    }
} catch {
    FileHandle.standardError.write(Data("listing-3-2: \(error)\n".utf8))
    exit(1)
}
