// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The second process of the tests of NSMachPort, and programs that run their main run loop.

import Foundation
import FoundationPorts
import PortSystem

/// Writes a line at once.
func say(_ line: String) {
    print(line)
    fflush(nil)
}

let arguments = CommandLine.arguments
switch arguments.dropFirst().first {
case "echo": EchoServer(name: arguments[2]).run()
case "hold": hold(name: arguments[2])
case "refusals": Refusals(name: arguments[2]).run()
case "main-loop": MainLoopScenario().run()
case "dispatch-main": DispatchMainScenario().run()
case "before-dispatch-main": DispatchMainScenario().runFromAnotherThread()
case "main-queue-loop": MainQueueLoopScenario().run()
default: say("unknown")
}
