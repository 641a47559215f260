// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// This file imports only Foundation and FoundationPorts. That it compiles is the test: it sees the functions that are
// re-exported, and its own functions with the names of others are not ambiguous.

import Foundation
import FoundationPorts

// CoreFoundation has these, and FoundationPorts does not offer them.
private struct CFArray {}
private struct CFURL {}
private func CFArrayCreateMutable(_ number: Int) -> Int { number }
private let kCFRunLoopDefaultMode = 3

func scopedReexports() -> String {
    let loop: CFRunLoop? = CFRunLoopGetCurrent()
    let time: CFTimeInterval = 0
    loop.map(CFRunLoopWakeUp)
    _ = (CFArray(), CFURL())
    let result: CFRunLoopRunResult = CFRunLoopRunInMode(.defaultMode, time, true)
    // The thread's loop has nothing in the mode.
    CFRunLoopRun()
    return "\(result == .finished ? "finished" : "\(result)") \(CFArrayCreateMutable(4) + kCFRunLoopDefaultMode)"
}
