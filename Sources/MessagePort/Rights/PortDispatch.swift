// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

// How a port's handler is called without a run loop, for example by a dispatch queue. The I/O thread checks for
// messages and has one block enqueued; the block handles one message and has the next block enqueued while there are
// more. So there is never more than one block: messages stay in order, even where blocks may run concurrently, and
// waiting messages stay in the port's queue, whose senders wait for room as always.
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
    ///   messages stay in the queue, and a handler that is under way continues.
    /// - Throws: ``PortError/Code/servedElsewhere`` when the port has a run-loop source, in a loop or not;
    ///   ``unscheduleEverywhere()`` removes that. ``PortError/Code/invalidPort``; ``PortError/Code/forkedProcess``;
    ///   ``PortError/Code/descriptorLimit``, ``PortError/Code/systemCallFailed``. Then nothing has changed.
    public func setDispatcher(_ dispatcher: Dispatcher?) throws(PortError) {
        try localPort.checkProcess()
        let binding = state.withLock { $0.binding }
        guard let dispatcher else {
            if binding.isDispatcher { unscheduleEverywhere() }
            return
        }
        if !binding.isDispatcher, binding.source?.isValid == true {
            throw PortError(.servedElsewhere).at(localPort.label)
        }
        let loop = try IOThread.loop()
        let generation = localPort.makeGeneration()
        let dispatch = PortDispatch(self, generation, dispatcher)
        let made = RunLoopSource(name: "port dispatch", routine: dispatch)
        dispatch.setSource(made)
        try localPort.attach(made, to: loop, in: .default)
        giveOwnership(to: .dispatcher(made), generation)
        if !isValid { throw PortError(.invalidPort).at(localPort.label) }
    }
}

/// One call of a dispatcher.
private final class DispatcherCall: Sendable {
    /// The calling thread; zero when the call has returned.
    private let thread = Atomic<UInt>(sysThisThread())

    /// Whether this thread is in the call.
    var isOnThisThread: Bool { thread.load(ordering: .relaxed) == sysThisThread() }

    func end() { thread.store(0, ordering: .relaxed) }
}

/// One dispatcher, and its block under way. It retains the port, and until its source ends the port's owner.
private final class PortDispatch: SourceRoutine {
    private enum Phase {
        case idle
        /// A block is enqueued, or is being called.
        case busy
        /// As `busy`, and the source does not watch the port's sockets until the block has returned: they stay readable
        /// meanwhile.
        case paused
    }

    private struct State {
        var phase = Phase.idle
        weak var source: RunLoopSource?
        var owner: (any AnyObject & Sendable)?
    }

    private let port: MachPort  // immutable
    private let generation: UInt64  // immutable
    private let enqueue: MachPort.Dispatcher  // immutable
    private let state = Mutex(State())

    init(_ port: MachPort, _ generation: UInt64, _ enqueue: @escaping MachPort.Dispatcher) {
        self.port = port
        self.generation = generation
        self.enqueue = enqueue
        let owner = port.localPort.owningObject
        state.withLock { $0.owner = owner }
    }

    /// The source that checks for messages; it retains this object.
    func setSource(_ source: RunLoopSource) {
        state.withLock { $0.source = source }
    }

    /// While there is a block the I/O thread has nothing to check: the block checks for the next message itself.
    func isReady() -> Bool {
        state.withLock { $0.phase == .idle } && port.localPort.hasMessage(inGeneration: generation)
    }

    /// The source is in one mode of one loop, so it has ended. A block that is still under way retains only the port.
    func didLeave(_ mode: RunLoopMode, of loop: ThreadRunLoop) {
        let owner = state.withLock { $0.owner.take() }
        port.dropUnusedSource()
        withExtendedLifetime(owner) {}
    }

    /// Called on the I/O thread when there may be a message: has a block enqueued, unless there is one.
    func perform() -> SourceOutcome {
        let (isBusy, source) = state.withLock { state in
            if state.phase == .idle { return (false, state.source) }
            state.phase = .paused
            return (true, state.source)
        }
        if isBusy {
            // Until the block has returned.
            if let source { port.localPort.pause(source) { state.withLock { $0.phase == .paused } } }
            return .handled
        }
        port.localPort.receiveFromSockets()
        guard port.localPort.hasMessage(inGeneration: generation) else {
            if let source { port.localPort.pauseWhileBlocked(source) }
            return .handled
        }
        state.withLock { $0.phase = .busy }
        enqueueNext()
        return .handled
    }

    private func enqueueNext() {
        let call = DispatcherCall()
        enqueue { self.handle(calledFrom: call) }
        call.end()
    }

    /// The block. When it is called before its dispatcher has returned, the I/O thread checks for the next message:
    /// nested blocks would exhaust the stack.
    private func handle(calledFrom call: DispatcherCall) {
        _ = port.handleMessages(generation) { false }
        if port.localPort.isInherited { return }  // the handler has forked, and this is the child
        if !call.isOnThisThread, port.localPort.hasMessage(inGeneration: generation) { return enqueueNext() }
        let (source, wasPaused) = state.withLock { state in
            defer { state.phase = .idle }
            return (state.source, state.phase == .paused)
        }
        guard let source else { return }
        if wasPaused { port.localPort.resume(source) }
        source.ring()
    }
}
