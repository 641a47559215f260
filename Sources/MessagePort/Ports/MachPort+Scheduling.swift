// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import RunLoopCore
import PortSystem
import Synchronization

extension MachPort {
    /// Makes a run loop call the handler for this port's messages, one message a turn. `-[NSRunLoop addPort:forMode:]`.
    ///
    /// The loop keeps the port alive until the port is invalidated, unscheduled from every loop, or the loop's thread ends.
    ///
    /// - Parameters:
    ///   - loop: the loop; the current thread's unless said otherwise.
    ///   - mode: a mode of it, or ``RunLoopMode/common``.
    /// - Throws: ``PortError/Code/invalidPort``; ``PortError/Code/servedElsewhere`` after ``setDispatcher(_:)``;
    ///   ``PortError/Code/descriptorLimit`` and ``PortError/Code/systemCallFailed`` when the port is reachable from other
    ///   processes and its sockets cannot be watched. The port is then not scheduled.
    public func schedule(on loop: ThreadRunLoop = .current, in mode: RunLoopMode = .default) throws(PortError) {
        var source: RunLoopSource
        repeat {
            source = try attachedSource()
            do throws(PortError) {
                try loop.addOrThrow(source, to: mode)
            } catch {
                dropUnusedSource { _ in }
                throw error
            }
            // A source that left its last loop at this very moment was invalidated: take a new one.
        } while !source.isValid && isValid
        guard isValid else { throw PortError(.invalidPort) }
        dropUnusedSource { _ in }  // the loop's thread has ended
    }

    /// The port's source, made when there is none.
    func attachedSource(order: Int = 0) throws(PortError) -> RunLoopSource {
        try core.checkProcess()
        let (source, turn, isDispatched) = state.withLock { ($0.source, $0.turn, $0.isDispatched) }
        if isDispatched { throw PortError(.servedElsewhere) }
        if let source, source.isValid { return source }
        if let source { dropInvalidSource(source) }
        let made = makeSource(turn, order: order)
        guard try core.attach(made) else { throw PortError(.invalidPort) }
        let winner = state.withLock { state -> RunLoopSource? in
            // After a move nobody would call the handler for this source.
            if state.source == nil, state.turn == turn { state.source = made }
            return state.isDispatched ? nil : state.source
        }
        if winner !== made {
            core.detach(made)
            made.invalidate()
        }
        guard let winner else { return try attachedSource(order: order) }
        return winner
    }

    /// Somebody who has the source has invalidated it: the port can have another.
    private func dropInvalidSource(_ source: RunLoopSource) {
        core.detach(source)
        state.withLock { state in
            if state.source === source { (state.source, state.isSourceKept) = (nil, false) }
        }
    }

    /// Takes the port out of a mode of a run loop. Messages stay in the queue.
    ///
    /// - Parameters:
    ///   - loop: the loop.
    ///   - mode: the mode that it was scheduled in.
    public func unschedule(from loop: ThreadRunLoop = .current, in mode: RunLoopMode = .default) {
        if core.isInherited { return }
        guard let source = state.withLock({ $0.source }) else { return }
        loop.remove(source, from: mode)
    }

    /// A source that keeps the port alive as long as a loop has it.
    func makeSource(_ turn: UInt64, order: Int = 0) -> RunLoopSource {
        let reference = PortReference(self)
        return makeSource(
            for: reference, order: order, readiness: { [core] in core.hasMessage(inTurn: turn) },
            performIfAny: { reference.port?.handleOne(turn) ?? false })
    }

    /// As above, for a source that has messages handled in a way of its own.
    func makeSource(
        for reference: PortReference, order: Int = 0, readiness: @escaping RunLoopSource.Readiness,
        performIfAny: @escaping RunLoopSource.PerformIfAny
    ) -> RunLoopSource {
        RunLoopSource(
            name: "port messages", order: order, readiness: readiness,
            schedule: { loop, mode in
                reference.port?.dropUnusedSource { $0.change(Place(loop: ObjectIdentifier(loop), mode: mode), by: 1) }
            },
            cancel: { loop, mode in
                reference.port?.dropUnusedSource { $0.change(Place(loop: ObjectIdentifier(loop), mode: mode), by: -1) }
            },
            performIfAny: performIfAny)
    }

    /// Notes that the source entered or left a mode; when it is in none, the port is no longer kept alive by it.
    func dropUnusedSource(after change: (inout State) -> Void) {
        let keeper = core.owner ?? self
        let (source, oldKeeper) = state.withLock { state -> (RunLoopSource?, (any AnyObject & Sendable)?) in
            change(&state)
            let oldKeeper = state.keeper
            state.keeper = state.places.isEmpty ? nil : oldKeeper ?? keeper
            guard state.places.isEmpty, !state.isSourceKept else { return (nil, oldKeeper) }
            state.isDispatched = false
            return (state.source.take(), oldKeeper)
        }
        defer { withExtendedLifetime(oldKeeper) {} }  // the port may end with it, and takes the lock then
        guard let source else { return }
        core.detach(source)
        source.invalidate()
    }

    /// Takes one message and hands it to the handler.
    ///
    /// - Returns: whether there was one; a new connection alone is none.
    func handleOne(_ turn: UInt64) -> Bool {
        guard let message = core.take(inTurn: turn) else {
            if let source = state.withLock({ $0.turn == turn ? $0.source : nil }) { core.pauseWhileHeldUp(source) }
            return false
        }
        defer { core.endTurn(turn) }
        if let handler = state.withLock({ $0.handler }) {
            handler(self, message)
        } else if core.isDead {
            // It ended after the message was taken: nobody handles that, and whoever waits for the answer hears why.
            message.replyTarget?.fail(PortError(.peerDied))
        }
        return true
    }
}

extension ThreadRunLoop {
    /// Adds a source whose descriptor the kernel may refuse to watch.
    func addOrThrow(_ source: RunLoopSource, to mode: RunLoopMode) throws(PortError) {
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

    /// Takes a port out of a mode of this loop. `-[NSRunLoop removePort:forMode:]`.
    ///
    /// - Parameters:
    ///   - port: the port.
    ///   - mode: the mode that it was scheduled in.
    public func remove(_ port: MachPort, forMode mode: RunLoopMode = .default) {
        port.unschedule(from: self, in: mode)
    }
}
