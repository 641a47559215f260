// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A program for the tests of the main thread's loop, which a test process cannot run itself. Each scenario runs on the
// main thread, over this library's loop or over CoreFoundation's, and prints what happens, a line each.
//
//   main-loop-peer SCENARIO ours|cf
//
// The status is 2 for an unknown scenario. An alarm ends a program that hangs.

import Foundation

/// Prints a line of the trace.
func say(_ line: String) {
    print(line)
    fflush(nil)
}

alarm(60)
let arguments = CommandLine.arguments
let loops: [String: any MainLoop] = ["ours": OurMainLoop(), "cf": CoreFoundationMainLoop()]
guard arguments.count == 3, let loop = loops[arguments[2]], let scenario = scenarios[arguments[1]] else {
    FileHandle.standardError.write(Data("not understood: \(arguments.dropFirst())\n".utf8))
    exit(2)
}
scenario(loop)
