// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

extension RunLoopSource {
    /// The loops in which the source is.
    package var loops: [ThreadRunLoop] { state.withLock { Array($0.homes.loops) } }

    /// Whether it is in this loop, and in no other.
    package func isIn(only loop: ThreadRunLoop) -> Bool {
        state.withLock { state in
            if case .one(let home) = state.homes.loops { home === loop } else { false }
        }
    }

    /// One of them; nil when it is in none.
    package var firstLoop: ThreadRunLoop? { state.withLock { $0.homes.loops.first } }

    /// Takes the source out of everything, for ever: its cancel routine is called on the calling thread for each mode
    /// that it leaves. A callout that is under way goes on.
    public func invalidate() {
        let (loops, departures) = state.withLock { state in
            let loops = state.homes.invalidate() ?? []
            let departures = loops.map { endWatches($0.takeOut(id, from: nil).departures) }
            if !isPortBased { state.signal = nil }
            state.descriptor = nil
            return (loops, departures)
        }
        for (loop, departures) in zip(loops, departures) { didLeave(departures, of: loop) }
    }

    /// Invalidates a source that is in no loop. One that is on its way into a loop is either there or stays out.
    ///
    /// - Returns: whether it is invalid now.
    package func invalidateUnlessInLoop() -> Bool {
        state.withLock { state in
            guard state.homes.loops.isEmpty else { return false }
            _ = state.homes.invalidate()
            if !isPortBased { state.signal = nil }
            state.descriptor = nil
            return true
        }
    }

    /// Adds the source to a mode.
    ///
    /// - Parameters:
    ///   - loop: the loop.
    ///   - mode: the mode.
    ///   - orLater: whether a descriptor that the kernel cannot watch now is watched later: see `watchLater`.
    /// - Throws: why the kernel does not watch the descriptor; the source is then in the mode no more than before.
    func add(to loop: ThreadRunLoop, _ mode: RunLoopMode, orLater: Bool = false) throws(SystemError) {
        let entered = state.withLock { $0.homes.add(.source(self), to: loop, mode) }
        if entered.isEmpty { return }
        do throws(SystemError) {
            try didEnter(entered, of: loop, orLater: orLater)
        } catch {
            _ = takeOut(of: loop, mode)
            throw error
        }
    }

    func remove(from loop: ThreadRunLoop, _ mode: RunLoopMode) {
        didLeave(takeOut(of: loop, mode), of: loop)
    }

    private func takeOut(of loop: ThreadRunLoop, _ mode: RunLoopMode) -> [RunLoopState.Departure] {
        state.withLock { state in
            defer { findSeat(&state) }
            return endWatches(state.homes.remove(id, from: loop, mode))
        }
    }

    /// Remembers a seat, after the source has entered a mode, or left one.
    private func findSeat(_ state: inout State) {
        guard isPortBased, let loop = state.homes.loops.first else { return }
        state.seat = loop.state.withLock { $0.seats.seat(of: id) } ?? 0
    }

    /// Makes the loop notice a source that has entered modes, and tells the source.
    func didEnter(_ modes: [Int], of loop: ThreadRunLoop, orLater: Bool = false) throws(SystemError) {
        let (seat, shortage) = try state.withLock { (state) throws(SystemError) in
            findSeat(&state)
            if !isPortBased, let stamp = state.signal { loop.noteSignal(of: self, stamp) }
            let shortage = state.descriptor.flatMap { watchFailure($0, in: [loop]) }
            if let shortage, !orLater || !shortage.isShortage { throw shortage }
            return (state.seat, shortage)
        }
        if shortage != nil { watchLater(in: loop) }
        if isPortBased { loop.noteRing(of: self, near: seat) }
        for name in loop.state.withLock({ state in modes.map { state.modes[$0].name } }) {
            routine.didEnter(name, of: loop)
        }
    }

    /// Ends the registrations of modes that were left. The caller holds the source's lock: were it free, the source
    /// could enter a mode again before, find its registration there, and lose it then.
    private func endWatches(_ departures: [RunLoopState.Departure]) -> [RunLoopState.Departure] {
        for departure in departures { departure.watch?.end(for: self) }
        return departures
    }

    private func didLeave(_ departures: [RunLoopState.Departure], of loop: ThreadRunLoop) {
        for departure in departures { routine.didLeave(departure.name, of: loop) }
    }
}
