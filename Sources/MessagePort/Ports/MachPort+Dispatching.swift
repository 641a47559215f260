// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// How a port's handler is called by something that is no run loop, such as a dispatch queue. The shared thread looks for
// messages and has one block enqueued; the block handles one message and has the next block enqueued while there are more.
// So there is never more than one block: the order is kept, also where blocks may run beside each other, and what waits
// stays in the port's queue, whose senders wait for room as ever.

import PortSystem
import RunLoopCore
import Synchronization

extension MachPort {
    /// Finds a place for a block: has it called soon, once, on whatever thread.
    public typealias Dispatcher = @Sendable (_ block: @escaping @Sendable () -> Void) -> Void

    /// Has the handler called in blocks for which the caller's function finds a place, in place of a run loop.
    /// `CFMessagePortSetDispatchQueue`.
    ///
    /// ```swift
    /// try port.setDispatcher { queue.async(execute: $0) }
    /// ```
    ///
    /// Each message is handled in a block of its own, one after the other and in order, whatever the queue. The port is
    /// kept alive until it is invalidated, or nil is set. A dispatcher that replaces another takes over when
    /// the handler that is under way is over.
    ///
    /// - Parameter dispatcher: called for each block, with no lock held; it must not wait. Nil ends that: messages stay in
    ///   the queue, and a handler that is under way goes on.
    /// - Throws: ``PortError/Code/servedElsewhere`` when the port has a run-loop source, be it in a loop or not;
    ///   ``unscheduleEverywhere()`` takes that away. ``PortError/Code/invalidPort``; ``PortError/Code/forkedProcess``;
    ///   ``PortError/Code/descriptorLimit``, ``PortError/Code/systemCallFailed``. Then everything is as it was.
    public func setDispatcher(_ dispatcher: Dispatcher?) throws(PortError) {
        try core.checkProcess()
        let (source, isDispatched) = state.withLock { ($0.source, $0.isDispatched) }
        guard let dispatcher else {
            if isDispatched { unscheduleEverywhere() }
            return
        }
        if let source, !isDispatched, source.isValid { throw PortError(.servedElsewhere) }
        let loop = try SharedReceiver.loop()
        let turn = core.makeTurnNumber()
        let dispatch = PortDispatch(dispatcher, turn)
        let reference = PortReference(self)
        let made = makeSource(
            for: reference, readiness: { [core] in !dispatch.isBusy && core.hasMessage(inTurn: turn) },
            performIfAny: {
                if let port = reference.port { dispatch.begin(port) }
                return true
            })
        dispatch.setSource(made)
        guard try core.attach(made) else { throw PortError(.invalidPort) }
        do throws(PortError) {
            try loop.addOrThrow(made, to: .default)
        } catch {
            core.detach(made)
            made.invalidate()
            throw error
        }
        giveTurn(to: made, turn, isDispatched: true)
        if !isValid { throw PortError(.invalidPort) }
    }
}

/// One function that enqueues, and the block that is under way there.
private final class PortDispatch: Sendable {
    private struct Reference: @unchecked Sendable {
        // @unchecked: read and replaced under the lock only.
        weak var source: RunLoopSource?
    }

    private struct State: Sendable {
        /// A block is enqueued, or called at this moment.
        var isBusy = false
        /// The source does not watch the port's sockets until the block is over: they stay readable meanwhile.
        var isPaused = false
        var reference = Reference()
    }

    private let enqueue: MachPort.Dispatcher  // immutable
    private let turn: UInt64  // immutable
    private let state = Mutex(State())

    init(_ enqueue: @escaping MachPort.Dispatcher, _ turn: UInt64) {
        self.enqueue = enqueue
        self.turn = turn
    }

    /// The source that looks for messages; it holds this object.
    func setSource(_ source: RunLoopSource) {
        state.withLock { $0.reference.source = source }
    }

    /// Whether the shared thread has nothing to look for: the block looks for the next message itself.
    var isBusy: Bool { state.withLock { $0.isBusy } }

    /// Called on the shared thread when there may be a message: has a block enqueued, unless there is one.
    func begin(_ port: MachPort) {
        let isBusy = state.withLock { state in
            if state.isBusy { state.isPaused = true }
            return state.isBusy
        }
        if isBusy { return pause(port) }
        port.core.receiveFromSockets()
        guard port.core.hasMessage(inTurn: turn) else {
            if let source = state.withLock({ $0.reference.source }) { port.core.pauseWhileHeldUp(source) }
            return
        }
        state.withLock { $0.isBusy = true }
        enqueue { self.handle(port) }
    }

    /// Leaves the sockets alone until the block is over.
    private func pause(_ port: MachPort) {
        guard let source = state.withLock({ $0.reference.source }) else { return }
        try? source.watch(nil)
        if state.withLock({ !$0.isPaused }), let sockets = port.core.sockets { try? source.watch(sockets.rawValue) }
    }

    /// The block.
    private func handle(_ port: MachPort) {
        _ = port.handleOne(turn)
        if port.core.hasMessage(inTurn: turn) { return enqueue { self.handle(port) } }
        let (source, wasPaused) = state.withLock { state in
            defer { (state.isBusy, state.isPaused) = (false, false) }
            return (state.reference.source, state.isPaused)
        }
        if wasPaused, let sockets = port.core.sockets { try? source?.watch(sockets.rawValue) }
        source?.ring()
    }
}
