// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort
import PortSystem
import RunLoopCore
import Synchronization

/// What the ports of one process share. A forked child has its own: its parent's ports are invalid there, and a
/// lock of its parent's may be held by a thread that the child does not have.
final class ProcessObjects: Sendable {
    let locals = PortTable()
    let remotes = PortTable()
    /// Foundation's ports.
    let portObjects = PortObjects()
    let mainQueue = MainQueueService()
    /// Ports for replies that wait for the next request.
    let replyWaits = Mutex<[ReplyWait]>([])
    /// The thread that notices the ends of ports; nil until the first notice.
    private let endThread = Mutex<ResidentThread?>(nil)
    private let forkGuard = ForkGuard()

    /// The address of the objects, which are retained: set once in each process.
    private static let address = Atomic<UInt>(0)

    /// Those of this process.
    static var current: ProcessObjects {
        while true {
            let known = address.load(ordering: .acquiring)
            if let pointer = UnsafeRawPointer(bitPattern: known) {
                let objects = Unmanaged<ProcessObjects>.fromOpaque(pointer).takeUnretainedValue()
                if !objects.forkGuard.isInherited { return objects }
            }
            let made = Unmanaged.passRetained(ProcessObjects())
            let own = UInt(bitPattern: made.toOpaque())
            let exchange = address.compareExchange(expected: known, desired: own, ordering: .acquiringAndReleasing)
            if exchange.exchanged { return made.takeUnretainedValue() }
            made.release()
        }
    }

    /// The thread that notices ends.
    ///
    /// - Throws: as `ResidentThread`, when it cannot be started.
    func threadForEnds() throws(SystemError) -> ResidentThread {
        try endThread.withLock { thread throws(SystemError) in
            if let thread { return thread }
            let started = try ResidentThread(name: "port-ends")
            thread = started
            return started
        }
    }
}
