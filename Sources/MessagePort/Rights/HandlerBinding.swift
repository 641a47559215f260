// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
public import RunLoopCore
import Synchronization

/// What calls a port's handler, through which source. It is as large as a pointer.
enum HandlerBinding: Sendable {
    case none
    /// Loops. The source retains the port; it ends when it is in no loop any more.
    case owning(RunLoopSource)
    /// Loops, but the source retains the port, or its owner, only while it is in a loop.
    case unowned(RunLoopSource)
    /// As `unowned`, but other code may have the source too: it stays when it is in no loop.
    case shared(RunLoopSource)
    /// The source enqueues blocks that call the handler, and never calls it on its loop.
    case dispatcher(RunLoopSource)

    var source: RunLoopSource? {
        switch self {
        case .none: nil
        case .owning(let source), .unowned(let source), .shared(let source), .dispatcher(let source): source
        }
    }

    var isDispatcher: Bool {
        if case .dispatcher = self { true } else { false }
    }
}

// MARK: - Scheduling

extension MachPort {
    /// Makes a run loop call the handler for this port's messages, one message per pass.
    /// `-[NSRunLoop addPort:forMode:]`.
    ///
    /// The loop retains the port until the port is invalidated, unscheduled from every loop, or the loop's thread ends.
    ///
    /// - Parameters:
    ///   - loop: the loop.
    ///   - mode: a mode of it, or ``/RunLoopCore/RunLoopMode/common``.
    /// - Throws: ``PortError/Code/invalidPort``; ``PortError/Code/servedElsewhere`` after ``setDispatcher(_:)``;
    ///   ``PortError/Code/descriptorLimit`` and ``PortError/Code/systemCallFailed`` when the port is reachable from
    ///   other processes and its sockets cannot be watched. The port is then not scheduled.
    public func schedule(on loop: ThreadRunLoop, in mode: RunLoopMode = .default) throws(PortError) {
        var source: RunLoopSource
        repeat {
            source = try attachedSource()
            do throws(PortError) {
                try loop.addOrThrow(source, to: mode)
            } catch {
                dropUnusedSource()
                throw error
            }
            // A source that left its last loop at this very moment was invalidated: get a new one.
        } while !source.isValid && isValid
        dropUnusedSource()  // the loop's thread, or the port, has ended
        if !isValid { throw PortError(.invalidPort).at(localPort.label) }
    }

    /// The port's source, made when there is none, or it was invalidated. `order` and `staysForOthers` apply only when
    /// it is made.
    func attachedSource(order: Int = 0, staysForOthers: Bool = false) throws(PortError) -> RunLoopSource {
        try localPort.checkProcess()
        let (old, generation) = state.withLock { ($0.binding, $0.generation) }
        if let source = old.source, source.isValid {
            if old.isDispatcher { throw PortError(.servedElsewhere).at(localPort.label) }
            return source
        }
        let (made, binding) = makeSource(generation, order: order, staysForOthers: staysForOthers)
        guard try localPort.attach(made) else {
            dropUnusedSource()  // one that was stored after the port had ended
            throw PortError(.invalidPort).at(localPort.label)
        }
        let (isTaken, former) = state.withLock { state in
            let former = state.source
            // After a move this source would not call the handler.
            let isTaken = former === old.source && state.generation == generation
            if isTaken { state.binding = binding }
            return (isTaken, former)
        }
        if isTaken {
            if let former { localPort.detach(former) }
            return made
        }
        localPort.detach(made)
        made.invalidate()
        return try attachedSource(order: order, staysForOthers: staysForOthers)
    }

    /// Removes the port from a mode of a run loop. Messages stay in the queue.
    ///
    /// - Parameters:
    ///   - loop: the loop.
    ///   - mode: the mode that it was scheduled in.
    public func unschedule(from loop: ThreadRunLoop, in mode: RunLoopMode = .default) {
        if localPort.isInherited { return }
        guard let source = state.withLock({ $0.source }) else { return }
        loop.remove(source, from: mode)
    }

    /// A source that retains the port while a loop has it.
    func makeSource(
        _ generation: UInt64, order: Int = 0, staysForOthers: Bool = false
    ) -> (source: RunLoopSource, binding: HandlerBinding) {
        let label = order == 0 ? SourceLabel.portMessages : SourceLabel(SourceLabel.portMessages.name, order: order)
        guard staysForOthers || localPort.owningObject != nil else {
            let source = RunLoopSource(label: label, routine: Routine(port: self, generation: generation))
            return (source, .owning(source))
        }
        let routine = UnownedSourceRoutine(self, generation)
        let source = RunLoopSource(label: label, routine: routine)
        routine.setSource(source)
        return (source, .unowned(source))
    }

    /// The routine of the port's source. It retains the port, and the port ends it when it is in no loop.
    private struct Routine: SourceRoutine {
        let port: MachPort
        let generation: UInt64

        var checksWhenPerformed: Bool { true }
        func isReady() -> Bool { port.localPort.hasMessage(inGeneration: generation) }
        func visitPollables(_ body: (any BusyPollable) -> Void) { port.localPort.visitPollables(body) }
        func didEnter(_ mode: RunLoopMode, of loop: ThreadRunLoop) { port.localPort.otherListenerWillBegin() }

        func didLeave(_ mode: RunLoopMode, of loop: ThreadRunLoop) {
            port.localPort.otherListenerWillBegin()
            port.dropUnusedSource()
        }

        func perform() -> SourceOutcome { perform { false } }
        func perform(while beginNextPass: () -> Bool) -> SourceOutcome {
            port.handleMessages(generation, while: beginNextPass)
        }
    }

    /// Ends the source when it is in no loop, and other code cannot have it.
    func dropUnusedSource() {
        if localPort.isInherited { return }
        let source = state.withLock { state -> RunLoopSource? in
            if case .shared = state.binding { return nil }
            guard let source = state.source, source.invalidateUnlessInLoop() else { return nil }
            state.binding = .none
            return source
        }
        if let source { localPort.detach(source) }
    }

    /// Dequeues messages and calls the handler: with one, and with more while the loop continues with this port.
    ///
    /// - Returns: whether there was one, where a new connection alone does not count; and whether there are more.
    func handleMessages(_ generation: UInt64, while beginNextPass: () -> Bool) -> SourceOutcome {
        if localPort.isInherited { return .nothing }
        var present = CachedHandler()
        let outcome = localPort.handleMessages(inGeneration: generation, on: .current, while: beginNextPass) {
            message in
            present.follow(self)
            present.handle(message, at: self)
        }
        if !outcome.hasHandled, let source = state.withLock({ $0.generation == generation ? $0.source : nil }) {
            localPort.pauseWhileBlocked(source)
        }
        return outcome
    }

    /// The receiver of a stream of messages, cached, so that it is not looked up and retained for each. It is not
    /// copyable, so that a call of the handler does not retain it either.
    private struct CachedHandler: ~Copyable {
        private var handler: Handler?
        private var changeCount: UInt32?

        /// Picks up a handler that was set before the message was dequeued.
        mutating func follow(_ port: MachPort) {
            let changeCount = port.localPort.receiverChanges.load(ordering: .acquiring)
            if changeCount == self.changeCount { return }
            self.changeCount = changeCount
            handler = port.state.withLock { $0.receiver }?.handler
        }

        func handle(_ message: MachMessage, at port: MachPort) {
            if handler?(port, message) != nil {
                message.replyTarget?.handlerDidEnd()
            } else if port.localPort.isDead {
                // The port ended after the message was dequeued: the message is not handled, and its requester gets the
                // reason.
                message.replyTarget?.fail(PortError(.peerDied))
            }
        }
    }
}

extension SourceLabel {
    static let portMessages = SourceLabel("port messages")
}

extension ThreadRunLoop {
    /// Schedules a port on this loop. `-[NSRunLoop addPort:forMode:]`.
    ///
    /// - Parameters:
    ///   - port: the port.
    ///   - mode: a mode of the loop.
    /// - Throws: as ``MachPort/schedule(on:in:)``.
    public func add(_ port: MachPort, forMode mode: RunLoopMode = .default) throws(PortError) {
        try port.schedule(on: self, in: mode)
    }

    /// Removes a port from a mode of this loop. `-[NSRunLoop removePort:forMode:]`.
    ///
    /// - Parameters:
    ///   - port: the port.
    ///   - mode: the mode that it was scheduled in.
    public func remove(_ port: MachPort, forMode mode: RunLoopMode = .default) {
        port.unschedule(from: self, in: mode)
    }
}

// MARK: - CurrentLoop

// For code that has a thread of its own: the loop is that thread's. A task names a loop.
extension MachPort {
    /// Makes the current thread's run loop call the handler for this port's messages. See ``schedule(on:in:)``.
    ///
    /// - Parameter mode: a mode of the loop, or ``/RunLoopCore/RunLoopMode/common``.
    /// - Throws: as ``schedule(on:in:)``.
    @available(*, noasync, message: "A task has no thread of its own: use `schedule(on:)`.")
    public func schedule(in mode: RunLoopMode = .default) throws(PortError) {
        try schedule(on: .current, in: mode)
    }

    /// Removes the port from a mode of the current thread's run loop. See ``unschedule(from:in:)``.
    ///
    /// - Parameter mode: the mode that it was scheduled in.
    @available(*, noasync, message: "A task has no thread of its own: use `unschedule(from:)`.")
    public func unschedule(in mode: RunLoopMode = .default) {
        unschedule(from: .current, in: mode)
    }

    /// Asks for one notice, on the current thread's run loop, when no send right is left. See
    /// ``notifyWhenNoSenders(on:in:_:)``.
    ///
    /// - Parameters:
    ///   - mode: the mode in which to call the handler.
    ///   - handler: called once on this thread.
    /// - Returns: the request, to withdraw it.
    /// - Throws: as ``notifyWhenNoSenders(on:in:_:)``.
    @available(*, noasync, message: "A task has no thread of its own: use `notifyWhenNoSenders(on:)`.")
    @discardableResult
    public func notifyWhenNoSenders(
        in mode: RunLoopMode = .common, _ handler: @escaping @Sendable () -> Void
    ) throws(PortError) -> NoticeRequest {
        try notifyWhenNoSenders(on: .current, in: mode, handler)
    }
}

// MARK: - Moving

extension MachPort {
    /// Moves the port, with its queue, from the loops that it is scheduled on to another.
    ///
    /// Senders do not notice. No message is lost, handled twice, or handled out of order, and at no time do both loops
    /// call the handler: a handler that is under way, the caller's too, ends first, and then the new loop begins. This
    /// call does not wait for that. Of several concurrent moves, the last to begin wins. A thread that receives without
    /// a loop continues to.
    ///
    /// - Parameters:
    ///   - loop: the loop. When its thread has ended, the port is scheduled nowhere afterwards.
    ///   - mode: a mode of it, or ``/RunLoopCore/RunLoopMode/common``.
    /// - Throws: as ``schedule(on:in:)``. The port then stays where it was.
    public func move(to loop: ThreadRunLoop, in mode: RunLoopMode = .default) throws(PortError) {
        try localPort.checkProcess()
        let generation = localPort.makeGeneration()
        let (source, binding) = makeSource(generation)
        try localPort.attach(source, to: loop, in: mode)
        giveOwnership(to: binding, generation)
        if !isValid { throw PortError(.invalidPort).at(localPort.label) }
    }

    /// Removes the port from every loop, so that another thread may receive from it. Messages stay in the queue.
    ///
    /// A handler that is under way continues; no other begins.
    public func unscheduleEverywhere() {
        if localPort.isInherited { return }
        giveOwnership(to: .none, localPort.makeGeneration())
    }

    /// Replaces the port's source, unless a later move has done so.
    func giveOwnership(to binding: HandlerBinding, _ generation: UInt64) {
        let (old, isLast) = state.withLock { state -> (RunLoopSource?, Bool) in
            guard generation > state.generation else { return (binding.source, false) }
            defer { (state.binding, state.generation) = (binding, generation) }
            return (state.source, true)
        }
        if isLast { localPort.giveOwnership(to: generation) }
        if let old {
            localPort.detach(old)
            old.invalidate()
        }
        dropUnusedSource()  // the loop's thread, or the port, has ended
    }
}

// MARK: - Source

extension MachPort {
    /// The source with which a run loop receives from this port, to be added to loops and modes by hand.
    /// `CFMachPortCreateRunLoopSource`, `CFMessagePortCreateRunLoopSource`.
    ///
    /// A port has one: ``schedule(on:in:)`` adds it too. It becomes invalid with the port, and when the port moves.
    /// After other code has invalidated it, the port makes another. It retains the port while it is in a loop, and only
    /// then. One that ``schedule(on:in:)`` or ``move(to:in:)`` has made for a port of its own ends when it leaves its
    /// last loop.
    ///
    /// - Parameter order: its position among sources that are ready at the same time, when this call makes it.
    /// - Returns: the source; the same each time.
    /// - Throws: ``PortError/Code/invalidPort``; ``PortError/Code/servedElsewhere`` after ``setDispatcher(_:)``;
    ///   ``PortError/Code/forkedProcess``; ``PortError/Code/descriptorLimit``, ``PortError/Code/systemCallFailed``.
    public func runLoopSource(order: Int = 0) throws(PortError) -> RunLoopSource {
        while true {
            let source = try attachedSource(order: order, staysForOthers: true)
            let isOurs = state.withLock { state in
                guard state.source === source else { return false }
                if case .unowned = state.binding { state.binding = .shared(source) }
                return true
            }
            // Otherwise it left its last loop at this very moment.
            if isOurs, source.isValid { return source }
            if !isValid { throw PortError(.invalidPort).at(localPort.label) }
        }
    }
}
