// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

extension RunLoopSource {
    private static let lastSignal = Atomic<UInt64>(0)

    /// Marks a custom source as having work, and wakes the loops that run in one of its modes. A source that is in no
    /// loop keeps its mark. Signals coalesce until the source is performed. Traps for a port-based source.
    public func signal() {
        if isPortBased {
            fatalError("A port-based source cannot be signalled by hand. Use ring() when its check may have changed.")
        }
        let (loops, stamp) = state.withLock { state -> (SmallList<ThreadRunLoop>, UInt64) in
            if !state.homes.isValid || state.signal != nil { return ([], 0) }
            let stamp = Self.lastSignal.wrappingAdd(1, ordering: .relaxed).newValue
            state.signal = stamp
            return (state.homes.loops, stamp)
        }
        for loop in loops { loop.noteSignal(of: self, stamp) }
    }

    /// Announces that a port-based source's check may have become true: each loop that it is in checks it before it
    /// sleeps, and is woken when it sleeps already. Calls coalesce until a loop checks. Traps for a custom source.
    ///
    /// Call it after the change that the check must see. The check reads under the lock under which the change was
    /// made, or with sequentially consistent atomics.
    public func ring() {
        if !isPortBased {
            fatalError("A custom source has no doorbell. Use signal() when it has work.")
        }
        if isRung.exchange(true, ordering: .sequentiallyConsistent) { return }
        let (loops, seat) = state.withLock { ($0.homes.loops, $0.seat) }
        switch loops {
        case .none: break
        case .one(let loop): loop.noteRing(of: self, near: seat)
        case .many(let loops): for loop in loops { loop.noteRing(of: self, near: seat) }
        }
    }

    /// Clears the mark of a custom source.
    ///
    /// - Returns: whether it is to be performed.
    func takeSignal() -> Bool {
        state.withLock { state in
            guard state.homes.isValid, state.signal != nil else { return false }
            state.signal = nil
            return true
        }
    }
}

extension ThreadRunLoop {
    func noteSignal(of source: RunLoopSource, _ stamp: UInt64) {
        let mustWake = state.withLock { state in
            var mustWake = false
            for index in state.places(of: source.id) {
                state.modes[index].signalled.set(source.id, ModeState.SignalKey(order: source.order, stamp: stamp))
                if state.isRunning(in: index) { mustWake = true }
            }
            return mustWake
        }
        if mustWake { doorbell.endWait() }
    }

    /// - Parameters:
    ///   - source: the source that was signalled.
    ///   - seat: the cached index of one of its registrations.
    func noteRing(of source: RunLoopSource, near seat: RegistrationIndex) {
        if state.withLock({ $0.noteRing(of: source, near: seat) }) { doorbell.endWait() }
    }
}
