// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import RunLoopCore
import Synchronization

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
                if case .looseLoops = state.service { state.service = .others(source) }
                return true
            }
            // Otherwise it left its last loop at this very moment.
            if isOurs, source.isValid { return source }
            if !isValid { throw PortError(.invalidPort).at(core.label) }
        }
    }
}
