// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// foundation-mixed
//
// CFMessagePort on CFRunLoop in one process, LocalMessagePort and RemoteMessagePort on ThreadRunLoop in another. They have
// the same names, and understand each other.

import Foundation

/// Prints a line at once: the two processes print to one terminal.
func say(_ line: String) {
    print(line)
    fflush(nil)
}

do {
    if CommandLine.arguments.count == 1 { try runMacSide() } else { try runNativeSide() }
} catch {
    FileHandle.standardError.write(Data("foundation-mixed: \(error)\n".utf8))
    exit(1)
}
