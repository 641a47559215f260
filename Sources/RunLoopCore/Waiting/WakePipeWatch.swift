// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem
import Synchronization

/// Where the edges of a wake pipe go: into the set of one loop at a time, which stays the same while that loop parks.
///
/// The pipe is not drained after each byte, so it reads as ready to whatever asks for levels: it lies in no other set.
package final class WakePipeWatch: Sendable {
    private struct State {
        weak var home: DescriptorSet?
        /// Under which key it is in that set.
        var key: UInt64 = 0
        /// How often other sets have asked since the home asked last.
        var strangerCount = 0
        /// How many edges have come since something arrived.
        var idleEdges = 0
        /// How many edges have come since the pipe was drained.
        var edgeCount = 0
        /// It is in no set any more.
        var isOver = false
    }

    /// A loop that parks here for the first time moves the pipe into its set only after as many tries: two loops that take
    /// turns would move it each time.
    private static let strangerLimit = 8
    /// A writer that wakes the loop this often without writing anything is cut off.
    private static let idleLimit = 64
    /// The pipe holds 65,536 bytes at least.
    private static let drainInterval = 4096

    private let pipe: WakePipe  // immutable
    private let state = Mutex(State())  // taken before the lock of a set

    package init(_ pipe: WakePipe) {
        self.pipe = pipe
    }

    /// Has edges end the waits of a set, if that is possible.
    ///
    /// - Returns: whether they do.
    func join(_ set: DescriptorSet) -> Bool {
        state.withLock { state in
            if state.isOver { return false }
            if let home = state.home {
                if home === set {
                    state.strangerCount = 0
                    return true
                }
                state.strangerCount += 1
                if state.strangerCount < Self.strangerLimit { return false }
                home.leave(state.key, wakePipe: pipe.rawValue)
                state.home = nil
            }
            guard let key = try? set.join(wakePipe: pipe.rawValue, self) else { return false }
            (state.home, state.key, state.strangerCount) = (set, key, 0)
            return true
        }
    }

    /// An edge has ended a wait of the loop, which is not parked now. Loop thread.
    func didReport() {
        let interval = WakePipe.hasEdgeForEachByte ? Self.drainInterval : 1
        let mustDrain = state.withLock { state in
            state.idleEdges += 1
            if state.idleEdges > Self.idleLimit { leave(&state) }
            state.edgeCount = (state.edgeCount + 1) % interval
            return state.edgeCount == 0
        }
        if mustDrain { pipe.drain() }
    }

    /// Whether it is in no set any more.
    var isCutOff: Bool { state.withLock { $0.isOver } }

    /// Something has arrived: the edges were for that.
    package func didArrive() {
        state.withLock { $0.idleEdges = 0 }
    }

    /// The connection has ended.
    package func end() {
        state.withLock { leave(&$0) }
    }

    private func leave(_ state: inout State) {
        state.isOver = true
        state.home?.leave(state.key, wakePipe: pipe.rawValue)
        state.home = nil
    }
}
