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
// whose message has outlived its handler, and that may be anywhere; a wait in another mode; a port of another process.
// One case is not detectable: a handler under way that has given a copy of its message, with the reply right in it, to
// another thread. A copy of a value looks like the value. So a handler that does this must remove the right first.
//
// The check comes before the send, not before the thread sleeps: so a refused request was not sent, and a cycle through
// full queues is found too. It takes the locks of what it reads, none that all share; usually the first loop that it
// reads is not waiting, and the check is over. A thread notes its wait first and checks then: so of the threads that
// close a cycle, the last sees it whole. As the waits are read one after the other, a cycle is checked twice. A wait,
// once over, never returns, so what the second check finds unchanged existed as a whole in between. The second check is
// under one lock, and removes the refused wait: of several threads that have seen the same cycle, one is refused.

import PortSystem
import RunLoopCore
import Synchronization

enum WaitGraph {
    /// What the thread of a loop waits for.
    final class Wait: Sendable {
        let port: LocalPort  // immutable
        let slot: ReplySlot  // immutable

        init(_ port: LocalPort, _ slot: ReplySlot) {
            self.port = port
            self.slot = slot
        }

        /// Whether only the port's receiver can end it.
        var isBlocked: Bool { slot.isWaiting && slot.isBound }
    }

    /// What a loop's thread waited for before, in an outer call on its stack.
    typealias ParentWait = (any AnyObject & Sendable)?

    /// Locked by a thread that has seen a cycle while it checks again.
    private static let deciding = Mutex(())

    /// Notes that the thread of a loop is about to wait.
    ///
    /// - Returns: what it waited for before; for `leave`.
    /// - Throws: `wouldDeadlock` when the wait would never end. Then nothing is noted.
    static func enter(_ loop: ThreadRunLoop, _ wait: Wait) throws(PortError) -> ParentWait {
        let outer = note(wait, at: loop)
        if wait.port.isKnownServed { return outer }
        var search = Search()
        guard search.findsNoThread(serving: wait.port) else { return outer }
        let isCertain = deciding.withLock { _ in
            guard search.areWaitsUnchanged() else { return false }
            note(outer, at: loop)
            return true
        }
        if isCertain { throw PortError(.wouldDeadlock, subject: .text(search.story(from: wait.port, to: loop))) }
        return outer
    }

    static func leave(_ loop: ThreadRunLoop, for outer: ParentWait) {
        note(outer, at: loop)
    }

    /// - Returns: what was noted before.
    @discardableResult
    private static func note(_ wait: ParentWait, at loop: ThreadRunLoop) -> ParentWait {
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

        /// Whether only threads that wait for each other can be reached.
        mutating func findsNoThread(serving first: LocalPort) -> Bool {
            var ports = [first]
            while let port = ports.popLast() {
                if servers[ObjectIdentifier(port)] != nil { continue }
                guard let loops = port.loopsThatMustServe else { return false }
                servers[ObjectIdentifier(port)] = loops
                for loop in loops {
                    guard let wait = Self.wait(of: loop), wait.isBlocked else { return false }
                    waits.append((loop, wait))
                    ports.append(wait.port)
                }
            }
            return true
        }

        /// Whether every wait that was seen still goes on.
        mutating func areWaitsUnchanged() -> Bool {
            // Retained, so that none is released under the lock.
            again = waits.map { Self.wait(of: $0.loop) }
            return zip(waits, again).allSatisfy { $0.wait === $1 && $0.wait.isBlocked }
        }

        private static func wait(of loop: ThreadRunLoop) -> Wait? {
            loop.waitNote.withLock { $0 } as? Wait
        }

        /// One path from the port to the loop, in words.
        func story(from first: LocalPort, to end: ThreadRunLoop) -> String {
            var (port, text) = (first, "It would wait for \(first.label)")
            for _ in 0..<servers.count {
                guard let loops = servers[ObjectIdentifier(port)] else { break }
                if loops.contains(end) { return text + ", which this thread serves." }
                guard let next = waits.first(where: { loops.contains($0.loop) })?.wait.port else { break }
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

    /// The loops of which one must handle the port's next message; nil when other code may.
    fileprivate var loopsThatMustServe: [ThreadRunLoop]? {
        if isInherited || mayServeSenders || receivesElsewhere.load(ordering: .relaxed) { return nil }
        let (sources, older) = state.withLock { state in
            // After a move, no source begins before the handlers under way elsewhere have returned.
            let (handlers, current) = (state.ownership.handlers, state.ownership.current)
            let older = handlers.all.filter { $0.generation != current }.map { unsafe $0.loop }
            return (state.sources.all, older)
        }
        let loops = sources.flatMap(\.loops)
        if loops.isEmpty { return nil }
        if !older.isEmpty { return older }
        // A loop that serves the port while it waits.
        let serves = loops.contains { loop in sources.contains { loop.contains($0, in: .portReply) } }
        return serves ? nil : loops
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
}
