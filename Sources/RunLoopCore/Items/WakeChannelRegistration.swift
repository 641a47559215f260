// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem
import Synchronization

/// Delivers the edges of a wake channel: into the set of one loop at a time, which stays the same while that loop
/// parks.
///
/// The channel is always ready for level-triggered waits: it is in no other set.
package final class WakeChannelRegistration: Sendable {
    private struct State {
        weak var joinedSet: DescriptorSet?
        /// Its key in that set.
        var key: UInt64 = 0
        /// How many attempts other sets have made to join since `joinedSet` last joined.
        var strangerCount = 0
        /// How many edges have come since something arrived, or since `idleSince`.
        var idleEdges = 0
        var idleSince = MonotonicInstant.distantPast
        /// It is in no set any more.
        var isOver = false

        /// - Returns: the set that it has left, to be released without the lock.
        mutating func leave(_ channel: WakeChannel) -> DescriptorSet? {
            let old = joinedSet
            old?.leave(key, wakeChannel: channel.rawValue)
            joinedSet = nil
            return old
        }
    }

    private let channel: WakeChannel  // immutable
    private let state = Mutex(State())  // taken before the lock of a set

    package init(_ channel: WakeChannel) {
        self.channel = channel
    }

    /// Lets edges end the waits of a set, if that is possible.
    ///
    /// - Returns: whether they do.
    func join(_ set: DescriptorSet) -> Bool {
        let (isJoined, old) = state.withLock { state -> (Bool, DescriptorSet?) in
            if state.isOver { return (false, nil) }
            let joinedSet = state.joinedSet
            if let joinedSet {
                if joinedSet === set {
                    state.strangerCount = 0
                    return (true, joinedSet)
                }
                state.strangerCount += 1
                if state.strangerCount < Tuning.strangerLimit { return (false, joinedSet) }
                _ = state.leave(channel)
            }
            guard let key = try? set.join(wakeChannel: channel.rawValue, self) else { return (false, joinedSet) }
            (state.joinedSet, state.key, state.strangerCount) = (set, key, 0)
            state.idleEdges -= 1  // a set reports what joins it; the peer has sent nothing
            return (true, joinedSet)
        }
        withExtendedLifetime(old) {}  // released without the lock
        return isJoined
    }

    /// An edge has ended a wait of the loop, which then receives what has arrived. Loop thread.
    func didReport() {
        let now = MonotonicInstant.coarse
        let old = state.withLock { state -> DescriptorSet? in
            if now > state.idleSince.advanced(by: Tuning.idleTime) { (state.idleEdges, state.idleSince) = (0, now) }
            state.idleEdges += 1
            if state.idleEdges <= Tuning.idleLimit { return nil }
            state.isOver = true
            return state.leave(channel)
        }
        withExtendedLifetime(old) {}
    }

    /// Whether it is in no set any more.
    var isCutOff: Bool { state.withLock { $0.isOver } }

    /// Something has arrived: the edges were for that.
    package func didArrive() {
        state.withLock { $0.idleEdges = 0 }
    }

    /// The connection has ended, or a set cannot hold the channel any more.
    package func end() {
        let old = state.withLock { state in
            state.isOver = true
            return state.leave(channel)
        }
        withExtendedLifetime(old) {}
    }
}
