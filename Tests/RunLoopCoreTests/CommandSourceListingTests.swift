// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore
import Synchronization
import TestSupport
import Testing

/// Listings 3-3 to 3-9 of Apple's Run Loops chapter, with a thread of the test instead of the main thread.
@Suite(.leakCheck) struct CommandSourceListingTests {
    /// Listing 3-8: what the application's delegate stores.
    private final class Delegate: Sendable {
        typealias RunLoopContext = CommandSource<Int>.Context

        private let sourcesToPing = Mutex<[RunLoopContext]>([])
        private let loop: ThreadRunLoop
        private let trace: Recorder<String>

        init(_ loop: ThreadRunLoop, _ trace: Recorder<String>) {
            self.loop = loop
            self.trace = trace
        }

        var contexts: [RunLoopContext] { sourcesToPing.withLock { $0 } }

        func registerSource(_ sourceInfo: RunLoopContext) {
            #expect(loop.isCurrent)
            sourcesToPing.withLock { $0.append(sourceInfo) }
            trace.append("registered")
            loop.stop()
        }

        func removeSource(_ sourceInfo: RunLoopContext) {
            #expect(loop.isCurrent)
            let removed = sourcesToPing.withLock { contexts in
                contexts.firstIndex(of: sourceInfo).map { contexts.remove(at: $0) }
            }
            #expect(removed == sourceInfo)
            trace.append("removed")
            loop.stop()
        }
    }

    private static let quit = 0

    /// Listings 3-5 and 3-7: the worker makes the source, adds it to its loop, runs, and handles what is sent.
    private func startWorker(_ delegate: Delegate, on client: ThreadRunLoop, _ trace: Recorder<String>)
        -> TestThread<RunLoopRunResult>
    {
        runOnThread {
            let loop = ThreadRunLoop.current
            do {
                let source = CommandSource<Int> { source, commands in
                    #expect(loop.isCurrent)
                    trace.append("handled \(commands)")
                    guard commands.contains(Self.quit) else { return }
                    source.invalidate()  // listing 3-6: waits for the client
                    trace.append("invalidated")
                }
                // Listing 3-4 calls the client without waiting, listing 3-6 waits.
                source.addClient(
                    on: client, removalLimit: Watchdog.longTimeout, registered: delegate.registerSource,
                    removed: delegate.removeSource)
                source.add(to: loop)
            }
            return loop.runGuarded()
        }
    }

    @Test(
        "S15, S4: listings 3-3 to 3-9: a worker's source is registered, gets commands, and is removed with its client's"
    )
    func listings() async throws {
        let trace = Recorder<String>("steps")
        try await onLoop { client in
            let delegate = Delegate(client, trace)
            client.add(idleSource())
            let worker = startWorker(delegate, on: client, trace)

            // Listing 3-8: the delegate is notified of the source on its own thread.
            #expect(client.runGuarded() == .stopped)
            #expect(delegate.contexts.count == 1)
            try sendCommands(delegate, trace)

            // The client's loop has to run for the removal, because the worker waits for it.
            #expect(client.runGuarded() == .stopped)
            #expect(delegate.contexts.isEmpty)
            // The loop had nothing but the source.
            #expect(try worker.join() == .finished)
        }
        #expect(
            trace.elements == [
                "registered", "handled [1, 2]", "handled [3]", "handled [4, 0]", "removed", "invalidated",
            ])
    }

    /// Listings 3-3 and 3-9: commands go into the buffer, then the source is signalled and its loop woken.
    private func sendCommands(_ delegate: Delegate, _ trace: Recorder<String>) throws {
        let context = try #require(delegate.contexts.first)
        #expect(!context.loop.isCurrent && context.source.isValid)
        #expect(context.source.add(1) == .accepted)
        #expect(context.source.add(2) == .accepted)
        #expect(context.source.count == 2)
        context.source.fire()
        trace.waitUntilCount(2)
        #expect(context.source.send(3) == .accepted)
        trace.waitUntilCount(3)
        #expect(context.source.add(4) == .accepted)
        #expect(context.source.send(Self.quit) == .accepted)
    }
}
