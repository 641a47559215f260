// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore
import Synchronization

/// Listing 3-3: the custom input source object. The chapter calls it RunLoopSource, which is a type of the library
/// here.
final class MyRunLoopSource: Sendable {
    private let runLoopSource = Mutex<RunLoopSource?>(nil)
    private let commands = Mutex<[(command: Int, data: String)]>([])
    private let delegate: AppDelegate

    init(delegate: AppDelegate) {
        self.delegate = delegate
    }

    /// Listing 3-7. The source is made here and not in the initializer, because its routines retain this object.
    func addToCurrentRunLoop() {
        let source = RunLoopSource(
            name: "commands",
            schedule: { runLoop, _ in self.scheduleRoutine(runLoop) },
            cancel: { runLoop, _ in self.cancelRoutine(runLoop) },
            perform: { self.performRoutine() })
        runLoopSource.withLock { $0 = source }
        ThreadRunLoop.current.add(source, to: .default)
    }

    func invalidate() {
        runLoopSource.withLock { $0.take() }?.invalidate()
    }

    /// Listing 3-4: the source was added to a run loop. Notifies the main thread, and does not wait for it.
    private func scheduleRoutine(_ runLoop: ThreadRunLoop) {
        let theContext = RunLoopContext(source: self, runLoop: runLoop)
        ThreadRunLoop.main.perform { [delegate] in delegate.registerSource(theContext) }
    }

    /// Listing 3-5: the source was signalled.
    private func performRoutine() {
        sourceFired()
    }

    /// Listing 3-6: the source was removed. Notifies the main thread, and waits for it.
    private func cancelRoutine(_ runLoop: ThreadRunLoop) {
        let theContext = RunLoopContext(source: self, runLoop: runLoop)
        do {
            try ThreadRunLoop.main.performAndWait(within: .seconds(10)) { [delegate] in
                delegate.removeSource(theContext)
            }
        } catch {
            print("worker: the main thread was not notified: \(error)")
        }
    }

    /// The handler: executes the commands.
    private func sourceFired() {
        let waiting = commands.withLock { commands in
            defer { commands = [] }
            return commands
        }
        for (command, data) in waiting {
            print("worker: command \(command): \(data)")
            if command == kQuitCommand { invalidate() }
        }
    }

    // The client's interface.

    func addCommand(_ command: Int, withData data: String) {
        commands.withLock { $0.append((command, data)) }
    }

    /// Listing 3-9.
    func fireAllCommands(on runLoop: ThreadRunLoop) {
        runLoopSource.withLock { $0 }?.signal()
        runLoop.wakeUp()
    }
}

/// Listing 3-3: the context that is passed when a source is registered.
struct RunLoopContext: Sendable, Equatable {
    let source: MyRunLoopSource
    let runLoop: ThreadRunLoop

    static func == (left: RunLoopContext, right: RunLoopContext) -> Bool {
        left.source === right.source && left.runLoop == right.runLoop
    }
}
