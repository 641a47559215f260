// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
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

    /// How long the end of a process that has ports is delayed by replies that their clients do not read.
    private static let exitLimit = Duration.seconds(2)

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
            guard exchange.exchanged else {
                made.release()
                continue
            }
            // A forked child has inherited it.
            if known == 0 { atexit { ProcessObjects.flushAtExit() } }
            return made.takeUnretainedValue()
        }
    }

    /// A program of a Mac may end as soon as a callback has returned: the kernel there has its reply. Here one for which
    /// the client has no room is in this process.
    private static func flushAtExit() {
        // A forked child that has made no port has no replies.
        guard let pointer = UnsafeRawPointer(bitPattern: address.load(ordering: .acquiring)),
            !Unmanaged<ProcessObjects>.fromOpaque(pointer).takeUnretainedValue().forkGuard.isInherited
        else { return }
        _ = MachPort.flushReplies(within: exitLimit)
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
