// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

extension RunLoopSource {
    /// The loops that the source is in.
    package var loops: [ThreadRunLoop] { state.withLock { Array($0.homes.loops) } }

    /// Whether it is in this loop, and in no other.
    package func isIn(only loop: ThreadRunLoop) -> Bool {
        state.withLock { state in
            if case .one(let home) = state.homes.loops { home === loop } else { false }
        }
    }

    /// One of them; nil when it is in none.
    package var firstLoop: ThreadRunLoop? { state.withLock { $0.homes.loops.first } }

    /// Removes the source from everything, permanently: its cancel routine is called on the calling thread for each
    /// mode that it leaves. A callout that is in progress continues.
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

    /// Invalidates a source that is in no loop. One that is being added to a loop is either in it already or stays out.
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
    /// - Throws: why the kernel does not watch the descriptor; the modes that the source is in are then unchanged.
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

    /// Caches the index of a registration, after the source has entered or left a mode.
    private func findSeat(_ state: inout State) {
        guard isPortBased, let loop = state.homes.loops.first else { return }
        state.seat = loop.state.withLock { $0.seats.seat(of: id) } ?? 0
    }

    /// Makes the loop notice a source that has entered modes, and notifies the source.
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

    /// Ends the watches of modes that were left. The caller holds the source's lock: without it, the source could enter
    /// a mode again before this, find its old watch there, and then lose it.
    private func endWatches(_ departures: [RunLoopState.Departure]) -> [RunLoopState.Departure] {
        for departure in departures { departure.watch?.end(for: self) }
        return departures
    }

    private func didLeave(_ departures: [RunLoopState.Departure], of loop: ThreadRunLoop) {
        for departure in departures { routine.didLeave(departure.name, of: loop) }
    }
}
