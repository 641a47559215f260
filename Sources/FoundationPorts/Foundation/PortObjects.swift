// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import MessagePort
import Synchronization

/// The ports of Foundation's in this process: one for each right, and one for each number. It retains none.
package final class PortObjects: Sendable {
    /// Those of this process.
    package static var shared: PortObjects { ProcessObjects.current.portObjects }

    // No port is released under the lock: what is found is returned, and what is compared is the identifier.
    // @unchecked Sendable: used under the lock. A class: Swift 6.3.1 releases a weak reference in a structure in a
    // collection once too often.
    fileprivate final class WeakCore: @unchecked Sendable {
        weak var core: MachPortCore?
        let identifier: ObjectIdentifier

        init(_ core: MachPortCore) {
            self.core = core
            identifier = ObjectIdentifier(core)
        }
    }

    struct State: Sendable {
        fileprivate var byNumber: [UInt32: WeakCore] = [:]
        fileprivate var byRight: [SendRight: WeakCore] = [:]

        fileprivate func makeNumber() -> UInt32 {
            while true {
                let number = PortObjects.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
                if number != 0, byNumber[number] == nil { return number }
            }
        }
    }

    /// A forked child goes on with its parent's: the parent's objects have theirs there, too.
    private static let lastNumber = Atomic<UInt32>(0x1000)
    let state = Mutex(State())

    /// How many ports it knows: by numbers, and by rights.
    package var counts: (numbers: Int, rights: Int) { state.withLock { ($0.byNumber.count, $0.byRight.count) } }

    /// The port with a number; when there is none, one that is invalid, and keeps the number from others.
    func core(numbered number: UInt32) -> MachPortCore {
        state.withLock { state in
            if let known = state.byNumber[number]?.core { return known }
            let core = MachPortCore(unknownNumber: number)
            state.byNumber[number] = WeakCore(core)
            return core
        }
    }

    /// A new port, with a new number.
    func add(_ make: (UInt32) -> MachPortCore) -> MachPortCore {
        state.withLock { state in
            let core = make(state.makeNumber())
            state.byNumber[core.number] = WeakCore(core)
            if let right = core.right { state.byRight[right] = WeakCore(core) }
            return core
        }
    }

    /// The port is being released.
    func remove(_ core: MachPortCore) {
        forgetRight(of: core)
        state.withLock { state in
            if state.byNumber[core.number]?.identifier == ObjectIdentifier(core) { state.byNumber[core.number] = nil }
        }
    }

    /// The port has ended: if its right comes again, it is a new port.
    func forgetRight(of core: MachPortCore) {
        guard let right = core.right else { return }
        state.withLock { state in
            if state.byRight[right]?.identifier == ObjectIdentifier(core) { state.byRight[right] = nil }
        }
    }

    /// The object for a right: the known one, or a new one that is invalidated when its port's process ends.
    func object(for right: SendRight) -> NSMachPort {
        let (core, isNew, ended) = state.withLock { state -> (MachPortCore, Bool, MachPortCore?) in
            let known = state.byRight[right]?.core
            // One that another thread ends is about to leave.
            if let known, known.isMarkedValid { return (known, false, nil) }
            let core = MachPortCore(right: right, number: state.makeNumber())
            state.byNumber[core.number] = WeakCore(core)
            state.byRight[right] = WeakCore(core)
            return (core, true, known)
        }
        // Released here, without the lock.
        withExtendedLifetime(ended) {}
        let object = core.makeObject()
        if isNew { core.watchEnd() }
        return object
    }

    /// Where the reply to a message goes; nil when it expects none.
    func object(forReplyTo message: MachMessage) -> NSMachPort? {
        message.expectsReply ? add { MachPortCore(request: message, number: $0) }.makeObject() : nil
    }
}
