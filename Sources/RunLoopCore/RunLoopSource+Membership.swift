// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

extension RunLoopSource {
    /// Takes the source out of everything, for ever: its cancel routine is called on the calling thread for each mode that
    /// it leaves. A callout that is under way goes on.
    public func invalidate() {
        let (loops, departures) = state.withLock { state in
            let loops = state.homes.invalidate() ?? []
            let departures = loops.map { $0.takeOut(id, from: nil).departures }
            state.signal = nil
            state.descriptor = nil
            return (loops, departures)
        }
        for (loop, departures) in zip(loops, departures) { didLeave(departures, of: loop) }
    }

    func add(to loop: ThreadRunLoop, _ mode: RunLoopMode) {
        let entered = state.withLock { $0.homes.add(.source(self), to: loop, mode) }
        if !entered.isEmpty { didEnter(entered, of: loop) }
    }

    func remove(from loop: ThreadRunLoop, _ mode: RunLoopMode) {
        let departures = state.withLock { $0.homes.remove(id, from: loop, mode) }
        didLeave(departures, of: loop)
    }

    /// Makes the loop notice a source that has entered modes, and tells the source.
    func didEnter(_ modes: [Int], of loop: ThreadRunLoop) {
        state.withLock { state in
            if let stamp = state.signal { loop.noteSignal(of: self, stamp) }
            guard let descriptor = state.descriptor else { return }
            do throws(SystemError) {
                try watch(descriptor, in: [loop])
            } catch {
                fatalError(
                    "A run loop cannot watch descriptor \(descriptor): \(error). Keep a source's descriptor open until "
                        + "the source is invalid, and use one that can be waited for.")
            }
        }
        if isPortBased { loop.noteRing(of: self) }
        guard let scheduleRoutine else { return }
        for name in loop.state.withLock({ state in modes.map { state.modes[$0].name } }) {
            scheduleRoutine(loop, name)
        }
    }

    private func didLeave(_ departures: [RunLoopState.Departure], of loop: ThreadRunLoop) {
        for departure in departures {
            departure.watch?.end(for: self)
            cancelRoutine?(loop, departure.name)
        }
    }
}
