// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CoreFoundation
import MessagePort
import NamedPortServer
import PortSystem
import Synchronization

/// The CFMessagePorts of this process by their names: one object for each name. It retains none.
final class PortTable: Sendable {
    // @unchecked Sendable: read under the table's lock only. A class: Swift 6.3.1 releases a weak reference in a
    // structure in a collection once too often.
    private final class Entry: @unchecked Sendable {
        /// Nil while the object is being made, or being released.
        weak var object: CFMessagePort?
        /// Nil while a thread makes the object.
        let body: ObjectIdentifier?
        /// The thread that makes it.
        let maker: Int32?

        init(maker: Int32) { (body, self.maker) = (nil, maker) }

        init(_ object: CFMessagePort, _ body: PortBody) {
            (self.object, self.body, maker) = (object, ObjectIdentifier(body), nil)
        }
    }

    private struct State: Sendable {
        var entries: [PortName: Entry] = [:]
        /// Set at the next change.
        var waiters: [ThreadEvent] = []
    }

    /// What becomes of a name that a thread asks for.
    enum Reservation {
        /// A valid port has it.
        case existing(CFMessagePort)
        /// It is the caller's, until it calls `commit` or `cancel`.
        case reserved
        /// This thread is about to make a port with the name, or another one makes it and does not finish.
        case refused
    }

    private enum SearchResult {
        case done(Reservation)
        /// Another thread makes the object, or ends it. It is released outside of the lock.
        case wait(ThreadEvent, CFMessagePort?)
    }

    private let state = Mutex(State())
    /// How long to wait for a thread that makes or ends a port.
    private static let patience = Duration.seconds(10)

    /// The object with a name, unless it is being released.
    func find(_ name: PortName) -> CFMessagePort? { state.withLock { $0.entries[name]?.object } }

    /// Gets the object with a name, or the right to make it. Waits while another thread makes it, or ends it.
    func reserve(_ name: PortName) -> Reservation {
        let deadline = MonotonicInstant.after(Self.patience)
        while true {
            let result = state.withLock { state -> SearchResult in
                guard let entry = state.entries[name] else {
                    state.entries[name] = Entry(maker: sysThreadID())
                    return .done(.reserved)
                }
                if entry.maker == sysThreadID() { return .done(.refused) }
                let object = entry.object
                if let object, object.body.isValid { return .done(.existing(object)) }
                let event = ThreadEvent()
                state.waiters.append(event)
                return .wait(event, object)
            }
            switch result {
            case .done(let reservation): return reservation
            case .wait(let event, _): if !event.wait(until: deadline) { return .refused }
            }
        }
    }

    /// Gives a reserved name its object.
    func commit(_ object: CFMessagePort, _ body: PortBody, for name: PortName) {
        change { $0[name] = Entry(object, body) }
    }

    /// Gives a reserved name up.
    func cancel(_ name: PortName) { change { $0[name] = nil } }

    /// Adds an object unless another one for the same port is alive and valid.
    ///
    /// - Returns: the object that has the name.
    func add(_ object: CFMessagePort, _ body: PortBody, for name: PortName) -> CFMessagePort {
        let (used, _) = state.withLock { state -> (CFMessagePort, CFMessagePort?) in
            let other = state.entries[name]?.object
            if let other, other.body.isValid, other.body.right == body.right { return (other, nil) }
            state.entries[name] = Entry(object, body)
            return (object, other)
        }
        return used
    }

    /// Forgets an object that has ended.
    func remove(_ name: PortName, of body: PortBody) {
        change { if $0[name]?.body == ObjectIdentifier(body) { $0[name] = nil } }
    }

    private func change(_ body: (inout [PortName: Entry]) -> Void) {
        let waiters = state.withLock { state in
            body(&state.entries)
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.set() }
    }
}
