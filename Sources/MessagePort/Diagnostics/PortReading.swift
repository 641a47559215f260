// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import RunLoopCore

/// Reads a port's sockets on a loop on which no handler is called. The thread that dequeues the messages may be busy
/// with one for a long time: what comes meanwhile waits in the queue, as far as there is room, and questions are
/// answered.
package final class PortReading: Sendable {
    private let core: LocalPort  // immutable
    private let source: RunLoopSource  // guards itself

    /// Begins.
    ///
    /// - Parameters:
    ///   - port: the port; it has no handler, and its messages are dequeued by `receive(within:)` or `tryReceive()`.
    ///   - loop: the loop of a thread that is never busy.
    /// - Throws: as ``MachPort/schedule(on:in:)``.
    package init(of port: MachPort, on loop: ThreadRunLoop) throws(PortError) {
        core = port.core
        let routine = Routine(core: core)
        source = RunLoopSource(name: "port reading", routine: routine)
        routine.source.set(WeakReference(object: source))
        guard try core.attach(source) else { throw PortError(.invalidPort).at(core.label) }
        do throws(PortError) {
            try loop.addOrThrow(source, to: .default)
        } catch {
            end()
            throw error
        }
    }

    /// Resumes after the queue was full: to be called when a message was dequeued.
    package func goOn() {
        if let sockets = core.sockets { source.watchSoon(pollable: sockets.rawValue) }
    }

    /// Ends.
    package func end() {
        core.detach(source)
        source.invalidate()
    }
}

private final class Routine: SourceRoutine {
    let core: LocalPort  // immutable
    let source = SetOnceReference<WeakReference<RunLoopSource>>()  // set by init of the above

    init(core: LocalPort) {
        self.core = core
    }

    func perform() -> SourceOutcome {
        core.receiveFromSockets()
        if core.socketsAreHeldUp, let source = source.object?.object {
            // They stay readable until there is room.
            try? source.watch(pollable: nil)
            if !core.socketsAreHeldUp, let sockets = core.sockets { source.watchSoon(pollable: sockets.rawValue) }
        }
        return .handled
    }
}
