// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import RunLoopCore
import PortSystem
import Synchronization

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
        if !isValid { throw PortError(.invalidPort).at(core.label) }
    }

    /// The port's source, made when there is none, or it was invalidated. `order` and `staysForOthers` apply only when
    /// it is made.
    func attachedSource(order: Int = 0, staysForOthers: Bool = false) throws(PortError) -> RunLoopSource {
        try core.checkProcess()
        let (old, turn) = state.withLock { ($0.service, $0.turn) }
        if let source = old.source, source.isValid {
            if old.isDispatcher { throw PortError(.servedElsewhere).at(core.label) }
            return source
        }
        let (made, service) = makeSource(turn, order: order, staysForOthers: staysForOthers)
        guard try core.attach(made) else {
            dropUnusedSource()  // one that was stored after the port had ended
            throw PortError(.invalidPort).at(core.label)
        }
        let (isTaken, former) = state.withLock { state in
            let former = state.source
            // After a move this source would not call the handler.
            let isTaken = former === old.source && state.turn == turn
            if isTaken { state.service = service }
            return (isTaken, former)
        }
        if isTaken {
            if let former { core.detach(former) }
            return made
        }
        core.detach(made)
        made.invalidate()
        return try attachedSource(order: order, staysForOthers: staysForOthers)
    }

    /// Removes the port from a mode of a run loop. Messages stay in the queue.
    ///
    /// - Parameters:
    ///   - loop: the loop.
    ///   - mode: the mode that it was scheduled in.
    public func unschedule(from loop: ThreadRunLoop, in mode: RunLoopMode = .default) {
        if core.isInherited { return }
        guard let source = state.withLock({ $0.source }) else { return }
        loop.remove(source, from: mode)
    }

    /// A source that retains the port while a loop has it.
    func makeSource(
        _ turn: UInt64, order: Int = 0, staysForOthers: Bool = false
    ) -> (source: RunLoopSource, service: HandlerBinding) {
        let label = order == 0 ? SourceLabel.portMessages : SourceLabel(SourceLabel.portMessages.name, order: order)
        guard staysForOthers || core.owner != nil else {
            let source = RunLoopSource(label: label, routine: Routine(port: self, turn: turn))
            return (source, .loops(source))
        }
        let routine = UnownedSourceRoutine(self, turn)
        let source = RunLoopSource(label: label, routine: routine)
        routine.setSource(source)
        return (source, .looseLoops(source))
    }

    /// The routine of the port's source. It retains the port, and the port ends it when it is in no loop.
    private struct Routine: SourceRoutine {
        let port: MachPort
        let turn: UInt64

        var looksWhenPerformed: Bool { true }
        func isReady() -> Bool { port.core.hasMessage(inTurn: turn) }
        func visitArrivalPlaces(_ body: (any BusyPollable) -> Void) { port.core.visitArrivalPlaces(body) }
        func didEnter(_ mode: RunLoopMode, of loop: ThreadRunLoop) { port.core.willBeHeardElsewhere() }

        func didLeave(_ mode: RunLoopMode, of loop: ThreadRunLoop) {
            port.core.willBeHeardElsewhere()
            port.dropUnusedSource()
        }

        func perform() -> SourceOutcome { perform { false } }
        func perform(while goesOn: () -> Bool) -> SourceOutcome { port.handleMessages(turn, while: goesOn) }
    }

    /// Ends the source when it is in no loop, and other code cannot have it.
    func dropUnusedSource() {
        let source = state.withLock { state -> RunLoopSource? in
            if case .others = state.service { return nil }
            guard let source = state.source, source.invalidateUnlessInLoop() else { return nil }
            state.service = .nobody
            return source
        }
        if let source { core.detach(source) }
    }

    /// Dequeues messages and calls the handler with them: one, and further ones while the loop goes on with this port.
    ///
    /// - Returns: whether there was one, where a new connection alone does not count; and whether there are more.
    func handleMessages(_ turn: UInt64, while goesOn: () -> Bool) -> SourceOutcome {
        var present = PresentReceiver()
        let outcome = core.handleMessages(inTurn: turn, on: .current, while: goesOn) { message in
            present.follow(self)
            present.handle(message, at: self)
        }
        if !outcome.hasHandled, let source = state.withLock({ $0.turn == turn ? $0.source : nil }) {
            core.pauseWhileHeldUp(source)
        }
        return outcome
    }

    /// The receiver of a stream of messages, cached, so that it is not looked up and retained for each. It is not
    /// copyable, so that a call of the handler does not retain it either.
    private struct PresentReceiver: ~Copyable {
        private var handler: Handler?
        private var changeCount: UInt32?

        /// Picks up a handler that was set before the message was dequeued.
        mutating func follow(_ port: MachPort) {
            let changeCount = port.core.receiverChanges.load(ordering: .acquiring)
            if changeCount == self.changeCount { return }
            self.changeCount = changeCount
            handler = port.state.withLock { $0.receiver }?.handler
        }

        func handle(_ message: MachMessage, at port: MachPort) {
            if handler?(port, message) != nil {
                message.replyTarget?.handlerDidEnd()
            } else if port.core.isDead {
                // The port ended after the message was dequeued: the message is not handled, and its requester gets the
                // reason.
                message.replyTarget?.fail(PortError(.peerDied))
            }
        }
    }
}

extension ThreadRunLoop {
    /// Adds a source whose descriptor the kernel may refuse to watch.
    package func addOrThrow(_ source: RunLoopSource, to mode: RunLoopMode) throws(PortError) {
        do throws(SystemError) {
            try tryAdd(source, to: mode)
        } catch {
            throw PortError(error)
        }
    }

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
