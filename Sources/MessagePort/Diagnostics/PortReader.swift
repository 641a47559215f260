// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import RunLoopCore

/// Reads a port's sockets on a loop on which no handler is called. The thread that dequeues the messages may be busy
/// with one for a long time: what comes meanwhile waits in the queue, as far as there is room, and queries are
/// answered.
package final class PortReader: Sendable {
    private let localPort: LocalPort  // immutable
    private let source: RunLoopSource  // guards itself

    /// Begins. The port has no handler, and its messages are dequeued by `receive(within:)` or `tryReceive()`; the loop's
    /// thread is never busy.
    ///
    /// - Throws: as ``MachPort/schedule(on:in:)``.
    package init(of port: MachPort, on loop: ThreadRunLoop) throws(PortError) {
        let (localPort, reference) = (port.localPort, ReleasableReference<WeakReference<RunLoopSource>>())
        self.localPort = localPort
        source = RunLoopSource(name: "port reading", readiness: { false }) {
            localPort.receiveFromSockets()
            guard localPort.socketsAreBlocked, let source = reference.object?.object else { return }
            localPort.pause(source) { localPort.socketsAreBlocked }  // until there is room
        }
        reference.set(WeakReference(source))
        try localPort.attach(source, to: loop, in: .default)
    }

    /// Resumes after the queue was full: to be called when a message was dequeued.
    package func resume() { localPort.resume(source) }

    package func end() {
        localPort.detach(source)
        source.invalidate()
    }
}
