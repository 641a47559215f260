// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Under an `async` main function, and so under `swift test`, nobody runs the main run loop on Linux: the main thread waits in
// `dispatchMain`, from which it never returns, and other threads serve the main queue. Ports on the main loop would never
// be served. So from then on they are served from the main queue. Until then the loop serves them, and nothing is asked of
// the main queue: a block on it would end a run of the loop as an event of a source does.
//
// A main thread that runs this package's loop serves the main queue, and never CoreFoundation's loop. From its first run on
// the ports are on that loop, too. Only the innermost loop of the thread serves them, so nothing changes hands between the
// two: each polls the same descriptor, and takes a message if one waits.

import CFoundationPorts
import CoreFoundation
import Dispatch
import Foundation
import PortSystem
import RunLoopCore
import Synchronization

/// Serves ports on the main run loop where the main thread runs this package's loop, and once it has left both for good.
package final class MainQueueService: Sendable {
    /// That of this process.
    package static var shared: MainQueueService { ProcessObjects.current.mainQueue }

    fileprivate final class Entry: Sendable {
        // @unchecked: libdispatch's objects may be used on any thread.
        struct Source: @unchecked Sendable { let cancel: () -> Void }

        let port: PortSource  // immutable
        // unsafe: set by init, and weak references may be read on any thread.
        nonisolated(unsafe) weak var source: CFRunLoopSource?
        struct State: Sendable {
            /// The modes in which the port is on CoreFoundation's loop.
            var modes: Set<String> = []
            /// The loops that stood for the main one when the port was added to them, and its modes there. Retained: another
            /// loop could have the address of one that is gone.
            var standIns: [(loop: CFRunLoop, mode: String)] = []
            /// On the main queue.
            var source: Source?
            /// On this package's loop.
            var loopSource: RunLoopSource?
        }

        let state = Mutex(State())

        init(_ port: PortSource, _ source: CFRunLoopSource) { (self.port, self.source) = (port, source) }

        var isValid: Bool { source.map { CFRunLoopSourceIsValid($0) } ?? false }
    }

    struct State: Sendable {
        fileprivate var entries: [ObjectIdentifier: Entry] = [:]
        /// Whether other threads serve the main queue.
        var isFree = false
        /// Whether the main thread has run this package's loop; nil while nobody has asked.
        var hasOtherLoop: Bool?
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

    private static let key: DispatchSpecificKey<Bool> = {
        let key = DispatchSpecificKey<Bool>()
        DispatchQueue.main.setSpecific(key: key, value: true)
        return key
    }()

    /// Whether this thread, which is not the main one, has the main queue now. Then other threads serve that, for good;
    /// `hasMainQueue` may not say so yet, while the main thread ends.
    var isOnThread: Bool { sysThreadID() != sysProcessID() && DispatchQueue.getSpecific(key: Self.key) == true }

    /// Whether it is the loop of this thread, which has the main queue now: a main actor's code means the main loop. This
    /// one runs only inside of that code, and the thread has other queues later.
    func standsForMainLoop(_ loop: CFRunLoop) -> Bool { isOnThread && loop === CFRunLoopGetCurrent() }

    /// Whether the loop stood for the main one when the port was added to it.
    func isStandIn(_ loop: CFRunLoop, of port: PortSource) -> Bool {
        let entry = state.withLock { $0.entries[ObjectIdentifier(port)] }
        return entry?.state.withLock { $0.standIns.contains { $0.loop === loop } } ?? false
    }

    /// A port was added to the main loop, or to a loop that stands for it, with a source that another thread may have
    /// invalidated since.
    func add(_ port: PortSource, _ source: CFRunLoopSource, mode: String, standIn: CFRunLoop? = nil) {
        let isFree = hasMainQueue || standIn != nil
        if !isFree { watchOtherLoop() }
        let entry = state.withLock { state -> Entry? in
            if isFree { state.isFree = true }
            // The end of a source invalidates it, and then calls `remove`.
            if !CFRunLoopSourceIsValid(source) { return nil }
            let entry = state.entries[ObjectIdentifier(port)] ?? Entry(port, source)
            state.entries[ObjectIdentifier(port)] = entry
            entry.state.withLock { entry in
                entry.modes.insert(mode)
                guard let standIn else { return }
                entry.standIns.append((standIn, mode))
                port.isOnMainQueueOnly.store(true, ordering: .relaxed)
            }
            return state.isFree || state.hasOtherLoop == true ? entry : nil
        }
        if let entry { update(entry) }
    }

    /// A port was removed from it, in one mode or, for nil, in all: it leaves the loops that stood for the main one, too.
    func remove(_ port: PortSource, mode: String?) {
        let removed = state.withLock { state -> (Entry, [(loop: CFRunLoop, mode: String)])? in
            guard let entry = state.entries[ObjectIdentifier(port)] else { return nil }
            let (isUnused, left) = entry.state.withLock { entry in
                if let mode { entry.modes.remove(mode) } else { entry.modes = [] }
                let left = entry.standIns.filter { mode == nil || $0.mode == mode }
                entry.standIns.removeAll { mode == nil || $0.mode == mode }
                return (entry.modes.isEmpty, left)
            }
            if isUnused { state.entries[ObjectIdentifier(port)] = nil }
            return (entry, left)
        }
        guard let (entry, left) = removed else { return }
        if let source = entry.source {
            for (loop, mode) in left {
                let mode = CFRunLoopMode(mode as NSString).asCoreFoundation
                CoreFoundation.CFRunLoopRemoveSource(loop, source, mode)
            }
        }
        // Last: until then a loop that stood for the main one could call the port's callback elsewhere.
        state.withLock { state in
            if state.entries[ObjectIdentifier(port)] == nil { port.isOnMainQueueOnly.store(false, ordering: .relaxed) }
        }
        update(entry)
    }

    /// The main thread has ended, or waits in `dispatchMain`.
    private func takeOver() {
        let entries = state.withLock { state in
            state.isFree = true
            return Array(state.entries.values)
        }
        for entry in entries { update(entry) }
    }

    /// Asks, once, for the first run of this package's main loop, or the next pass of one that runs already.
    private func watchOtherLoop() {
        let isFirst = state.withLock { state in
            defer { state.hasOtherLoop = state.hasOtherLoop ?? false }
            return state.hasOtherLoop == nil
        }
        if !isFirst { return }
        let observer = RunLoopObserver(activities: [.entry, .beforeTimers], repeats: false) { [weak self] _, _ in
            self?.useOtherLoop()
        }
        ThreadRunLoop.main.add(observer, to: .common)
        ThreadRunLoop.main.wakeUp()
    }

    private func useOtherLoop() {
        let entries = state.withLock { state in
            state.hasOtherLoop = true
            return Array(state.entries.values)
        }
        for entry in entries { update(entry) }
    }

    /// Starts or ends the service of a port.
    private func update(_ entry: Entry) {
        let (isFree, hasOtherLoop) = state.withLock { ($0.isFree, $0.hasOtherLoop == true) }
        // Made without a lock.
        let made = !isFree && hasOtherLoop ? makeLoopSource(entry) : nil
        var isAdded = false
        let (source, loopSource) = entry.state.withLock { state -> (Entry.Source?, RunLoopSource?) in
            let isServed = !state.modes.isDisjoint(with: Self.served)
            if isServed, isFree, state.source == nil { state.source = makeSource(entry) }
            if isServed, let made, state.loopSource == nil { (state.loopSource, isAdded) = (made, true) }
            return (isServed ? nil : state.source.take(), isServed && !isFree ? nil : state.loopSource.take())
        }
        // It may be invalid by now.
        if let made, isAdded { ThreadRunLoop.main.add(made, to: .common) }
        source?.cancel()
        loopSource?.invalidate()
    }

    private func makeLoopSource(_ entry: Entry) -> RunLoopSource {
        let port = entry.port
        return RunLoopSource(descriptor: port.descriptor) { [self, weak entry] in
            if entry?.isValid == true { port.handleOne() } else { remove(port, mode: nil) }
        }
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
