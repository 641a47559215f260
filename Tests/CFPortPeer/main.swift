// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import MessagePort
import NamedPortServer

// What a second process does in the tests of FoundationPorts: `cf-port-peer COMMAND NAME`. It writes a line for each thing
// that a test waits for, and ends with its standard input.
let words = CommandLine.arguments.dropFirst()
guard let command = words.first, let name = words.dropFirst().first else {
    say("usage: cf-port-peer serve|queue|hold|client|stream|refusals NAME [COUNT]")
    say("       cf-port-peer native-serve|native-client|native-main NAME")
    exit(64)
}
switch command {
case "serve": Server(name).run()
case "queue": Server(name).runOnQueue()
case "hold": Server(name).hold()
case "client": Client(name).run()
case "stream": Client(name).stream(Int(words.last ?? "") ?? 0)
case "refusals": Refusals(name: name).run(closing: false)
case "refusals-closed": Refusals(name: name).run(closing: true)
case "native-serve": NativePeer(name).serve()
case "native-client": NativePeer(name).run()
case "native-main": NativeMainLoop(name).run()
default: exit(64)
}
