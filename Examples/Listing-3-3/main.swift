// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Listings 3-3 to 3-9: a worker thread receives commands through a custom input source. The main thread is notified of
// the source when the worker adds it to its run loop, and forgets it when the worker removes it.

import Foundation
import RunLoopCore

let kQuitCommand = 0

/// Listing 3-8: the main thread's list of sources.
struct AppDelegate: Sendable {
    private let sourcesToPing = LoopBound<[RunLoopContext]>([])

    func registerSource(_ sourceInfo: RunLoopContext) {
        sourcesToPing.value.append(sourceInfo)
        print("main: registered a source, \(sourcesToPing.value.count) in all")
        pingSources()
    }

    func removeSource(_ sourceInfo: RunLoopContext) {
        sourcesToPing.value.removeAll { $0 == sourceInfo }
        print("main: removed a source, \(sourcesToPing.value.count) left")
    }

    /// The purpose of the list: it sends commands to the workers.
    private func pingSources() {
        for context in sourcesToPing.value {
            context.source.addCommand(1, withData: "sort the letters")
            context.source.addCommand(2, withData: "stamp them")
            context.source.addCommand(kQuitCommand, withData: "go home")
            context.source.fireAllCommands(on: context.runLoop)
        }
    }
}

func workerMain(_ delegate: AppDelegate) {
    let source = MyRunLoopSource(delegate: delegate)
    source.addToCurrentRunLoop()
    let result = ThreadRunLoop.current.run()
    print("worker: the run returned: \(result)")
}

print("the chapter's source")
Thread.detachNewThread { [delegate = AppDelegate()] in
    workerMain(delegate)
    ThreadRunLoop.main.stop()
}
ThreadRunLoop.main.run()

print("the library's")
startReadyMade()
ThreadRunLoop.main.run()
