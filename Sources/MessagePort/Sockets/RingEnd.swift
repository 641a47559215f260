// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

/// What one end of a connection brings for its rings: memory that it alone writes, and the pipe by which its loop is woken.
final class RingEnd: Sendable {
    let memory: SharedMemory  // immutable
    /// Nil where the process has enough pipes, or no descriptor left: then the peer rings over the socket.
    let wakePipe: WakePipeWatch?  // immutable
    /// How many descriptors it takes of the budget.
    private let pipeCount = Atomic<Int>(0)

    private init(_ memory: SharedMemory, _ pipe: WakePipe?) {
        self.memory = memory
        wakePipe = pipe.map { WakePipeWatch($0) }
        if pipe != nil { pipeCount.store(1, ordering: .relaxed) }
    }

    deinit {
        DescriptorBudget.wakePipes.give(pipeCount.load(ordering: .relaxed))
    }

    /// Makes an end.
    ///
    /// - Returns: the end, and what the peer is to get: the memory's file, and the writing end of the pipe, if there is one.
    /// - Throws: why there is no memory.
    static func make() throws(SystemError) -> (end: RingEnd, descriptors: [SharedDescriptor]) {
        let (memory, file) = try SharedMemory.make(size: RecordRing.memorySize)
        guard DescriptorBudget.wakePipes.take(1) else { return (RingEnd(memory, nil), [file]) }
        guard let (pipe, writing) = try? WakePipe.make() else {
            DescriptorBudget.wakePipes.give(1)
            return (RingEnd(memory, nil), [file])
        }
        return (RingEnd(memory, pipe), [file, writing])
    }

    /// Opens the peer's pipe.
    ///
    /// - Parameter pipe: its writing end; nil when none came.
    /// - Returns: what wakes the peer; nil when the socket is to.
    func open(_ pipe: SharedDescriptor?) -> PipeWaker? {
        guard let pipe, DescriptorBudget.wakePipes.take(1) else { return nil }
        guard let waker = PipeWaker(pipe) else {
            DescriptorBudget.wakePipes.give(1)
            return nil
        }
        pipeCount.add(1, ordering: .relaxed)
        return waker
    }
}
