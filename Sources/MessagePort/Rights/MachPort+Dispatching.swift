// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// How a port's handler is called without a run loop, for example by a dispatch queue. The shared thread checks for
// messages and has one block enqueued; the block handles one message and has the next block enqueued while there are
// more. So there is never more than one block: messages stay in order, even where blocks may run concurrently, and
// waiting messages stay in the port's queue, whose senders wait for room as always.

import PortSystem
import RunLoopCore
import Synchronization

extension MachPort {
    /// Enqueues a block: has it called soon, once, on any thread.
    public typealias Dispatcher = @Sendable (_ block: @escaping @Sendable () -> Void) -> Void

    /// Has the handler called in blocks that a function of the caller enqueues, instead of by a run loop.
    /// `CFMessagePortSetDispatchQueue`.
    ///
    /// ```swift
    /// try port.setDispatcher { queue.async(execute: $0) }
    /// ```
    ///
    /// Each message is handled in a block of its own, one after the other and in order, whatever the queue. The port
    /// stays alive until it is invalidated, or nil is set. A dispatcher that replaces another takes over when the
    /// handler that is under way has returned.
    ///
    /// - Parameter dispatcher: called for each block, with no lock held; it must not wait. It may call the block
    ///   itself: then the block runs on the library's own thread, which serves others too. Nil ends the dispatching:
    ///   messages stay in the queue, and a handler that is under way goes on.
    /// - Throws: ``PortError/Code/servedElsewhere`` when the port has a run-loop source, in a loop or not;
    ///   ``unscheduleEverywhere()`` removes that. ``PortError/Code/invalidPort``; ``PortError/Code/forkedProcess``;
    ///   ``PortError/Code/descriptorLimit``, ``PortError/Code/systemCallFailed``. Then everything is as it was.
    public func setDispatcher(_ dispatcher: Dispatcher?) throws(PortError) {
        try core.checkProcess()
        let service = state.withLock { $0.service }
        guard let dispatcher else {
            if service.isDispatcher { unscheduleEverywhere() }
            return
        }
        if !service.isDispatcher, service.source?.isValid == true { throw PortError(.servedElsewhere).at(core.label) }
        let loop = try IOThread.loop()
        let turn = core.makeTurnNumber()
        let dispatch = PortDispatch(self, turn, dispatcher)
        let made = RunLoopSource(name: "port dispatch", routine: dispatch)
        dispatch.setSource(made)
        guard try core.attach(made) else { throw PortError(.invalidPort).at(core.label) }
        do throws(PortError) {
            try loop.addOrThrow(made, to: .default)
        } catch {
            core.detach(made)
            made.invalidate()
            throw error
        }
        giveTurn(to: .dispatcher(made), turn)
        if !isValid { throw PortError(.invalidPort).at(core.label) }
    }
}

/// One call of a dispatcher.
private final class Enqueuing: Sendable {
    /// The calling thread; zero when the call has returned.
    private let thread = Atomic<UInt>(sysThisThread())

    /// Whether this thread is in the call.
    var isUnderWayHere: Bool { thread.load(ordering: .relaxed) == sysThisThread() }

    func end() { thread.store(0, ordering: .relaxed) }
}

/// One dispatcher, and the block that is under way there. It retains the port, and until its source ends what owns the
/// port.
private final class PortDispatch: SourceRoutine {
    private struct State {
        /// A block is enqueued, or called at this moment.
        var isBusy = false
        /// The source does not watch the port's sockets until the block has returned: they stay readable meanwhile.
        var isPaused = false
        weak var source: RunLoopSource?
        var owner: (any AnyObject & Sendable)?
    }

    private let port: MachPort  // immutable
    private let turn: UInt64  // immutable
    private let enqueue: MachPort.Dispatcher  // immutable
    private let state = Mutex(State())

    init(_ port: MachPort, _ turn: UInt64, _ enqueue: @escaping MachPort.Dispatcher) {
        self.port = port
        self.turn = turn
        self.enqueue = enqueue
        let owner = port.core.owner
        state.withLock { $0.owner = owner }
    }

    /// The source that checks for messages; it retains this object.
    func setSource(_ source: RunLoopSource) {
        state.withLock { $0.source = source }
    }

    /// While there is a block the shared thread has nothing to check: the block checks for the next message itself.
    func isReady() -> Bool { state.withLock { !$0.isBusy } && port.core.hasMessage(inTurn: turn) }

    /// The source is in one mode of one loop, so it has ended. A block that is still under way retains only the port.
    func didLeave(_ mode: RunLoopMode, of loop: ThreadRunLoop) {
        let owner = state.withLock { $0.owner.take() }
        port.dropUnusedSource()
        withExtendedLifetime(owner) {}
    }

    /// Called on the shared thread when there may be a message.
    func perform() -> SourceOutcome {
        begin()
        return .handled
    }

    /// Has a block enqueued, unless there is one.
    private func begin() {
        let isBusy = state.withLock { state in
            if state.isBusy { state.isPaused = true }
            return state.isBusy
        }
        if isBusy { return pause() }
        port.core.receiveFromSockets()
        guard port.core.hasMessage(inTurn: turn) else {
            if let source = state.withLock({ $0.source }) { port.core.pauseWhileHeldUp(source) }
            return
        }
        state.withLock { $0.isBusy = true }
        enqueueNext()
    }

    private func enqueueNext() {
        let place = Enqueuing()
        enqueue { self.handle(calledFrom: place) }
        place.end()
    }

    /// Stops watching the sockets until the block has returned.
    private func pause() {
        guard let source = state.withLock({ $0.source }) else { return }
        try? source.watch(pollable: nil)
        if state.withLock({ !$0.isPaused }), let sockets = port.core.sockets {
            source.watchSoon(pollable: sockets.rawValue)
        }
    }

    /// The block. When it is called before its dispatcher has returned, the shared thread checks for the next message:
    /// nested blocks would exhaust the stack.
    private func handle(calledFrom place: Enqueuing) {
        _ = port.handleMessages(turn) { false }
        if !place.isUnderWayHere, port.core.hasMessage(inTurn: turn) { return enqueueNext() }
        let (source, wasPaused) = state.withLock { state in
            defer { (state.isBusy, state.isPaused) = (false, false) }
            return (state.source, state.isPaused)
        }
        if wasPaused, let sockets = port.core.sockets { source?.watchSoon(pollable: sockets.rawValue) }
        source?.ring()
    }
}
