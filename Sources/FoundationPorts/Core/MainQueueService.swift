// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Under an `async` main function, and so under `swift test`, nobody runs the main run loop on Linux: the main thread waits in
// `dispatchMain`, from which it never returns, and other threads serve the main queue. Ports on the main loop would never
// be served. So from then on they are served from the main queue. Until then the loop serves them, and nothing is asked of
// the main queue: a block on it would end a run of the loop as an event of a source does.

import CFoundationPorts
import CoreFoundation
import Dispatch
import Foundation
import Synchronization

/// Serves ports on the main run loop once the main thread has left it for good.
package final class MainQueueService: Sendable {
    /// That of this process.
    package static var shared: MainQueueService { ProcessObjects.current.mainQueue }

    fileprivate final class Entry: Sendable {
        // @unchecked: libdispatch's objects may be used on any thread.
        struct Source: @unchecked Sendable { let cancel: () -> Void }

        let port: PortSource  // immutable
        // unsafe: set by init, and weak references may be read on any thread.
        nonisolated(unsafe) weak var source: CFRunLoopSource?
        /// The modes in which the port is on the loop, and the source on the main queue.
        let state = Mutex<(modes: Set<String>, source: Source?)>(([], nil))

        init(_ port: PortSource, _ source: CFRunLoopSource) { (self.port, self.source) = (port, source) }

        var isValid: Bool { source.map { CFRunLoopSourceIsValid($0) } ?? false }
    }

    struct State: Sendable {
        fileprivate var entries: [ObjectIdentifier: Entry] = [:]
        /// Whether other threads serve the main queue.
        var isFree = false
    }

    let state = Mutex(State())
    private let events = Atomic<Int>(0)

    /// The main loop runs in others only where a client runs it in them.
    private static let served: Set<String> = ["kCFRunLoopDefaultMode", "kCFRunLoopCommonModes"]

    /// Whether other threads serve the main queue, for good.
    package var hasMainQueue: Bool { fp_main_queue_is_free { MainQueueService.shared.takeOver() } }

    /// How many events the main queue has had for ports.
    package var eventCount: Int { events.load(ordering: .relaxed) }

    /// How many ports are known to be on the main loop.
    package var portCount: Int { state.withLock { $0.entries.count } }

    /// A port was added to the main loop, with a source that another thread may have invalidated since.
    func add(_ port: PortSource, _ source: CFRunLoopSource, mode: String) {
        let isFree = hasMainQueue
        let entry = state.withLock { state -> Entry? in
            if isFree { state.isFree = true }
            // The end of a source invalidates it, and then calls `remove`.
            if !CFRunLoopSourceIsValid(source) { return nil }
            let entry = state.entries[ObjectIdentifier(port)] ?? Entry(port, source)
            state.entries[ObjectIdentifier(port)] = entry
            entry.state.withLock { _ = $0.modes.insert(mode) }
            return state.isFree ? entry : nil
        }
        if let entry { update(entry) }
    }

    /// A port was removed from it, in one mode or, for nil, in all.
    func remove(_ port: PortSource, mode: String?) {
        let entry = state.withLock { state -> Entry? in
            guard let entry = state.entries[ObjectIdentifier(port)] else { return nil }
            let isUnused = entry.state.withLock { entry in
                if let mode { entry.modes.remove(mode) } else { entry.modes = [] }
                return entry.modes.isEmpty
            }
            if isUnused { state.entries[ObjectIdentifier(port)] = nil }
            return entry
        }
        if let entry { update(entry) }
    }

    /// The main thread has ended, or waits in `dispatchMain`.
    private func takeOver() {
        let entries = state.withLock { state in
            state.isFree = true
            return Array(state.entries.values)
        }
        for entry in entries { update(entry) }
    }

    /// Starts or ends the service of a port.
    private func update(_ entry: Entry) {
        let isFree = state.withLock { $0.isFree }
        let ended = entry.state.withLock { state -> Entry.Source? in
            let isServed = isFree && !state.modes.isDisjoint(with: Self.served)
            if isServed, state.source == nil { state.source = makeSource(entry) }
            return isServed ? nil : state.source.take()
        }
        ended?.cancel()
    }

    private func makeSource(_ entry: Entry) -> Entry.Source {
        let port = entry.port
        let source = DispatchSource.makeReadSource(fileDescriptor: port.descriptor, queue: .main)
        source.setEventHandler { [self, weak entry] in
            events.add(1, ordering: .relaxed)
            // A source that was invalidated, which is not announced, is released later.
            if entry?.isValid == true { port.handleOne() } else { remove(port, mode: nil) }
        }
        // Retains the port, whose descriptor this is, until the source no longer uses it.
        source.setCancelHandler { withExtendedLifetime(port) {} }
        source.resume()
        return Entry.Source { source.cancel() }
    }
}
