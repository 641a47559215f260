// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

extension RunLoopMode {
    /// The mode in which `receive(within:)` waits: nothing else runs in it.
    static let portReceive = RunLoopMode(rawValue: "PortReceiveMode")
}

/// Moves arrivals from the sockets into the queue for a thread that waits in `receive(within:)`.
private struct ReceiveRoutine: SourceRoutine {
    let core: LocalPort

    func isReady() -> Bool { core.hasMessage }
    func visitArrivalPlaces(_ body: (any BusyPollable) -> Void) { core.visitArrivalPlaces(body) }

    func perform() -> SourceOutcome {
        core.receiveFromSockets()
        return .handled
    }
}

extension MachPort {
    /// Dequeues the oldest message, if there is one now.
    ///
    /// - Returns: the message, or nil.
    /// - Throws: ``PortError/Code/invalidPort`` when the port is invalid; ``PortError/Code/forkedProcess``.
    public func tryReceive() throws(PortError) -> MachMessage? {
        try core.checkProcess()
        core.willReceiveElsewhere()
        if let message = core.take() { return message }
        if core.isDead { throw PortError(.invalidPort).at(core.label) }
        return nil
    }

    /// Dequeues the oldest message, waiting for one if necessary. `mach_msg` with `MACH_RCV_TIMEOUT`.
    ///
    /// The port need not be scheduled. The calling thread waits in a private mode of its run loop, in which nothing
    /// else runs. When the port is also scheduled on a loop, each message goes to the first that dequeues it.
    ///
    /// - Parameter limit: how long to wait; zero or less checks once.
    /// - Returns: the message; nil when none came in time.
    /// - Throws: ``PortError/Code/invalidPort`` when the port is or becomes invalid; ``PortError/Code/forkedProcess``;
    ///   ``PortError/Code/descriptorLimit`` and ``PortError/Code/systemCallFailed`` when the port's sockets cannot be
    ///   watched.
    @available(*, noasync, message: "It blocks the thread. Use `messages` to suspend the task instead.")
    public func receive(within limit: Duration) throws(PortError) -> MachMessage? {
        if let message = try tryReceive() { return message }
        if limit <= .zero { return nil }
        let deadline = MonotonicInstant.after(limit)
        let loop = ThreadRunLoop.current
        let source = RunLoopSource(label: .portReceive, routine: ReceiveRoutine(core: core))
        guard try core.attach(source) else { throw PortError(.invalidPort).at(core.label) }
        defer {
            core.detach(source)
            source.invalidate()
        }
        try loop.addOrThrow(source, to: .portReceive)
        while true {
            if let message = try tryReceive() { return message }
            let result = loop.run(
                mode: .portReceive, until: deadline, while: { [core] in !core.hasMessage && !core.isDead })
            if result == .timedOut { return try tryReceive() }
        }
    }
}
