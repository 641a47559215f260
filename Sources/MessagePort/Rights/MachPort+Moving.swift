// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import RunLoopCore
import Synchronization

extension MachPort {
    /// Moves the port, with its queue, from the loops that it is scheduled on to another.
    ///
    /// Senders do not notice. No message is lost, handled twice, or handled out of order, and at no time do both loops
    /// call the handler: a handler that is under way, the caller's too, ends first, and then the new loop begins. This
    /// call does not wait for that. Of several concurrent moves, the last to begin wins. A thread that receives without
    /// a loop goes on doing so.
    ///
    /// - Parameters:
    ///   - loop: the loop. When its thread has ended, the port is scheduled nowhere afterwards.
    ///   - mode: a mode of it, or ``/RunLoopCore/RunLoopMode/common``.
    /// - Throws: as ``schedule(on:in:)``. The port then stays where it was.
    public func move(to loop: ThreadRunLoop, in mode: RunLoopMode = .default) throws(PortError) {
        try core.checkProcess()
        let turn = core.makeTurnNumber()
        let (source, service) = makeSource(turn)
        guard try core.attach(source) else { throw PortError(.invalidPort).at(core.label) }
        do throws(PortError) {
            try loop.addOrThrow(source, to: mode)
        } catch {
            core.detach(source)
            source.invalidate()
            throw error
        }
        giveTurn(to: service, turn)
        if !isValid { throw PortError(.invalidPort).at(core.label) }
    }

    /// Removes the port from every loop, so that another thread may receive from it. Messages stay in the queue.
    ///
    /// A handler that is under way goes on; no other begins.
    public func unscheduleEverywhere() {
        if core.isInherited { return }
        giveTurn(to: .nobody, core.makeTurnNumber())
    }

    /// Replaces the port's source, unless a later move has done so.
    func giveTurn(to service: HandlerBinding, _ turn: UInt64) {
        let (old, isLast) = state.withLock { state -> (RunLoopSource?, Bool) in
            guard turn > state.turn else { return (service.source, false) }
            defer { (state.service, state.turn) = (service, turn) }
            return (state.source, true)
        }
        if isLast { core.giveTurn(to: turn) }
        if let old {
            core.detach(old)
            old.invalidate()
        }
        dropUnusedSource()  // the loop's thread, or the port, has ended
    }
}
