// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Which threads wait for which: the synchronous requests of this process that wait in the private mode, each noted at
// the loop of its thread.
//
//   thread ──request──▶ port ──is served by──▶ loop of a thread ──request──▶ port …
//
// A request is refused when only threads that wait like this can be reached from its port: none of them will ever serve
// a port. Whatever is uncertain counts as "will be served": a port that is in no loop, or that was received from by
// other means, or that intercepts messages before they are queued; a reply right that was removed from its message, or
// whose message has outlived its handler, and that may be anywhere; a wait in another mode; a port of another process,
// for which a wait is noted when it has lasted for a while: see `WaitProbes`.
// One case is not detectable: a handler under way that has given a copy of its message, with the reply right in it, to
// another thread. A copy of a value looks like the value. So a handler that does this must remove the right first.
// Two more are not considered. A timer, an observer or a source of code's own in `.portReply` may end a wait: only
// ports there count. And a port on two loops is served while one of them does not wait, although the handler that has
// the request may be the other's, and in a circle: that is not found.
//
// The check comes before the send, not before the thread sleeps: so a refused request was not sent, and a cycle through
// full queues is found too. It takes the locks of what it reads, none that all share; usually the first loop that it
// reads is not waiting, and the check is over. A thread notes its wait first and checks then: so of the threads that
// close a cycle, the last sees it whole. As the waits are read one after the other, a cycle is checked twice. A wait,
// once over, never returns: a thread reuses the slot of a wait only when nothing else refers to it, and a search does. So
// what the second check finds unchanged existed as a whole in between. The second check is
// under one lock, and removes the refused wait: of several threads that have seen the same cycle, one is refused.

import PortSystem
import RunLoopCore
import Synchronization

enum WaitGraph {
    /// What the thread of a loop waits for. Three words: a value of any type has room for as many, so noting one allocates
    /// nothing.
    struct Wait: Sendable {
        /// The port; nil when it is another process's.
        let port: LocalPort?
        /// The connection to the port of another process.
        private let connection: SocketConnection?
        let slot: ReplySlot

        init(_ port: LocalPort, _ slot: ReplySlot) {
            (self.port, connection, self.slot) = (port, nil, slot)
        }

        init(over connection: SocketConnection, _ slot: ReplySlot) {
            (port, self.connection, self.slot) = (nil, connection, slot)
        }

        /// Whether only the port's receiver can end it.
        var isBlocked: Bool { slot.isWaiting && slot.isBound }

        /// As a probe reaches it.
        var reached: WaitKey {
            let request = connection.flatMap { connection in
                slot.token(over: connection).map { RequestToken(connection: connection.number, token: $0) }
            }
            return WaitKey(number: slot.waitNumber, token: request)
        }

        /// Whether a probe of the wait with this number may pass through; without one, whether the wait can be followed
        /// within this process.
        func lets(_ other: WaitNumber?) -> Bool {
            guard let other else { return port != nil }
            return slot.waitNumber <= other && (port != nil || reached.token != nil)
        }

        /// Asks the process at the other end of the connection.
        func pass(_ probe: WaitProbe, about token: UInt64) { connection?.send(probe, about: token) }

        /// Ends the wait: no thread will answer.
        func refuse() {
            let story = "only threads that wait for each other, in several processes, can answer it"
            slot.giveUp(PortError(.wouldDeadlock, subject: .text(story)), otherwise: .unknown)
        }
    }

    /// What a loop's thread waited for before, in an outer call on its stack.
    typealias ParentWait = (any Sendable)?

    /// Locked by a thread that has seen a cycle while it checks again.
    private static let deciding = Mutex(())

    /// Notes that the thread of a loop is about to wait.
    ///
    /// - Returns: what it waited for before; for `leave`.
    /// - Throws: `wouldDeadlock` when the wait would never end. Then nothing is noted.
    static func enter(_ loop: ThreadRunLoop, _ wait: Wait) throws(PortError) -> ParentWait {
        let outer = note(wait, at: loop)
        guard let port = wait.port, !port.isKnownServed else { return outer }
        var search = Search()
        guard search.findsNoThread(serving: port) else { return outer }
        let isCertain = deciding.withLock { _ in
            guard search.areWaitsUnchanged() else { return false }
            note(outer, at: loop)
            return true
        }
        if isCertain { throw PortError(.wouldDeadlock, subject: .text(search.story(from: port, to: loop))) }
        return outer
    }

    /// What the thread of a loop waits for.
    static func wait(of loop: ThreadRunLoop) -> Wait? { loop.waitNote.withLock { $0 } as? Wait }

    static func leave(_ loop: ThreadRunLoop, for outer: ParentWait) {
        note(outer, at: loop)
    }

    /// The waits that can be reached from a port, for a probe of the wait with this number; nil when a thread may serve
    /// the port, or one of them does not let the probe through.
    static func waits(for port: LocalPort, reachedBy number: WaitNumber) -> [Wait]? {
        var search = Search()
        return search.findsNoThread(serving: port, for: number) ? search.waits.map(\.wait) : nil
    }

    /// - Returns: what was noted before.
    @discardableResult
    fileprivate static func note(_ wait: ParentWait, at loop: ThreadRunLoop) -> ParentWait {
        loop.waitNote.withLock { note in
            let old = note
            note = wait
            return old
        }
    }

    /// One search of the graph. Retains what it has read.
    private struct Search {
        var servers: [ObjectIdentifier: [ThreadRunLoop]] = [:]
        var waits: [(loop: ThreadRunLoop, wait: Wait)] = []
        private var again: [Wait?] = []

        /// Whether only threads that wait can be reached: for each other, or, with the number of a wait whose probe
        /// follows them, for other processes.
        mutating func findsNoThread(serving first: LocalPort, for number: WaitNumber? = nil) -> Bool {
            var ports = [first]
            while let port = ports.popLast() {
                if servers[ObjectIdentifier(port)] != nil { continue }
                // A probe follows a request that is at its port; what is about to be sent may be intercepted.
                if port.mayServeSenders, number == nil { return false }
                guard let loops = port.loopsThatMustServe else { return false }
                servers[ObjectIdentifier(port)] = loops
                for loop in loops {
                    guard let wait = Self.wait(of: loop), wait.isBlocked, wait.lets(number) else { return false }
                    waits.append((loop, wait))
                    if let port = wait.port {
                        if port.mayServeSenders { return false }
                        ports.append(port)
                    }
                }
            }
            return true
        }

        /// Whether every wait that was seen still goes on.
        mutating func areWaitsUnchanged() -> Bool {
            // Retained, so that none is released under the lock. `waits` retains the slots, so that none is reused.
            again = waits.map { Self.wait(of: $0.loop) }
            return zip(waits, again).allSatisfy { $0.wait.slot === $1?.slot && $0.wait.isBlocked }
        }

        private static func wait(of loop: ThreadRunLoop) -> Wait? { WaitGraph.wait(of: loop) }

        /// One path from the port to the loop, in words.
        func story(from first: LocalPort, to end: ThreadRunLoop) -> String {
            var (port, text) = (first, "It would wait for \(first.label)")
            for _ in 0..<servers.count {
                guard let loops = servers[ObjectIdentifier(port)] else { break }
                if loops.contains(end) { return text + ", which this thread serves." }
                guard let next = waits.first(where: { loops.contains($0.loop) })?.wait.port
                else { break }
                text += ", whose thread waits for \(next.label)"
                port = next
            }
            return text + "."
        }
    }
}

extension LocalPort {
    /// Whether the first read finds a loop that serves the port and does not wait: the usual case, which makes no list.
    fileprivate var isKnownServed: Bool {
        if isInherited || mayServeSenders || receivesElsewhere.load(ordering: .relaxed) { return true }
        let source = state.withLock { state in
            state.ownership.isAwaitingOlderHandlers ? nil : state.sources.first
        }
        return source?.firstLoop?.waitNote.withLock { $0 == nil } ?? false
    }

    /// The loops of which one must handle the next message in the port's queue; nil when other code may.
    fileprivate var loopsThatMustServe: [ThreadRunLoop]? {
        if isInherited || receivesElsewhere.load(ordering: .relaxed) { return nil }
        let (sources, older, present) = state.withLock { state in
            // After a move, no source begins before the handlers under way elsewhere have returned.
            let (handlers, current) = (state.ownership.handlers, state.ownership.current)
            let older = handlers.all.filter { $0.generation != current }.map { unsafe $0.loop }
            let present = handlers.all.map { unsafe $0.loop }
            return (state.sources.all, older, present)
        }
        // A handler under way may answer, though the port has left its loop.
        let loops = sources.flatMap(\.loops)
        if loops.isEmpty { return nil }
        if !older.isEmpty { return older }
        // A loop that serves the port while it waits.
        let serves = loops.contains { loop in sources.contains { loop.contains($0, in: .portReply) } }
        return serves ? nil : loops + present.filter { !loops.contains($0) }
    }
}

extension SendRight {
    /// Calls `body`, in which the loop's thread waits for the slot in the private mode.
    ///
    /// - Throws: `wouldDeadlock` before the body is called; what the body throws.
    func waiting<Success>(
        on loop: ThreadRunLoop, for slot: ReplySlot, _ body: () throws(PortError) -> Success
    ) throws(PortError) -> Success {
        guard let port = destination as? LocalPort, !port.isInherited else { return try body() }
        let outer = try WaitGraph.enter(loop, WaitGraph.Wait(port, slot))
        defer { if !port.isInherited { WaitGraph.leave(loop, for: outer) } }
        return try body()
    }

    /// Runs the loop in the private mode until the slot has something, or until the limit. Probes follow a wait that
    /// lasts.
    func wait(on loop: ThreadRunLoop, for slot: ReplySlot, within limit: Duration) {
        let start = MonotonicInstant.now
        var phase: ProbePhase?
        _ = loop.run(
            mode: .portReply, until: start.advanced(by: limit), while: { slot.isWaiting },
            alarm: start.advanced(by: Tuning.timeUntilProbe)
        ) {
            if phase == nil { phase = ProbePhase(for: slot, on: loop, from: start) }
            return phase?.startProbe() ?? .distantFuture
        }
        phase?.end()
    }
}

/// What a wait that has lasted for a while does from then on: probes follow it, and one for a port of another process
/// is noted.
struct ProbePhase {
    private let wait: Shared<WaitGraph.Wait>
    private let loop: ThreadRunLoop
    private let outer: WaitGraph.ParentWait
    private var schedule: ProbeSchedule

    init?(for slot: ReplySlot, on loop: ThreadRunLoop, from start: MonotonicInstant) {
        if slot.isInherited { return nil }
        (self.loop, schedule) = (loop, ProbeSchedule(from: start))
        if let connection = slot.remote?.connection {
            slot.beginWait()
            wait = Shared(WaitGraph.Wait(over: connection, slot))
            outer = WaitGraph.note(wait.value, at: loop)
        } else {
            guard let noted = WaitGraph.wait(of: loop), noted.slot === slot else { return nil }
            (wait, outer) = (Shared(noted), nil)
        }
    }

    /// - Returns: when to start the next one.
    mutating func startProbe() -> MonotonicInstant {
        schedule.begin()
        WaitProbes.start(for: wait, on: loop)
        return schedule.next
    }

    func end() {
        if wait.value.port == nil, !wait.value.slot.isInherited { WaitGraph.leave(loop, for: outer) }
    }
}

extension WaitNumber {
    private static let lastTime = Atomic<UInt64>(0)
    private static let key = UInt64.random(in: 0...(.max))

    /// The present time, which no other wait of this process has.
    static func makeTime() -> UInt64 {
        var last = lastTime.load(ordering: .relaxed)
        while true {
            let made = max(last + 1, UInt64(clamping: MonotonicInstant.now.nanoseconds))
            let (isMade, newer) = lastTime.compareExchange(expected: last, desired: made, ordering: .relaxed)
            if isMade { return made }
            last = newer
        }
    }

    init(ofWaitNoticedAt time: UInt64) {
        var hasher = Hasher()
        hasher.combine(time)
        hasher.combine(Self.key)
        self.init(time: time, secret: UInt64(truncatingIfNeeded: hasher.finalize()))
    }
}
