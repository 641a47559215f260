// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Who waits for whom: the synchronous requests of this process that wait in the private mode, each by the loop of its thread.
//
//   thread ──request──▶ port ──is served by──▶ loop of a thread ──request──▶ port …
//
// A request is refused when from its port only threads can be reached that wait in such a way: none of them will ever serve a
// port. Whatever is not certain counts as "will be served": a port that is in no loop, or from which somebody has received
// otherwise, or which looks at messages before they are queued; a reply right that was taken out of its message, and may be
// anywhere; a wait in another mode; a port of another process.

import PortSystem
import RunLoopCore
import Synchronization

final class WaitGraph: Sendable {
    /// The process's graph.
    static let shared = WaitGraph()

    struct Wait: Sendable {
        var port: PortCore
        var slot: ReplySlot
    }

    private let waits = Mutex<[ObjectIdentifier: Wait]>([:])

    /// Notes that the thread of a loop is about to wait.
    ///
    /// - Returns: what it waited for before, further down on its stack; for `leave`.
    /// - Throws: `wouldDeadlock` when it would wait for ever. Nothing is noted then.
    func enter(_ loop: ThreadRunLoop, _ wait: Wait) throws(PortError) -> Wait? {
        let (outer, deadlock, seen) = waits.withLock { waits in
            let outer = waits.updateValue(wait, forKey: ObjectIdentifier(loop))
            var search = Search(waits)
            let deadlock = search.findsNobody(serving: wait.port) ? search.story(from: wait.port, to: loop) : nil
            if deadlock != nil { waits[ObjectIdentifier(loop)] = outer }
            return (outer, deadlock, search)
        }
        withExtendedLifetime(seen) {}  // what it held is released without the lock
        if let deadlock { throw PortError(.wouldDeadlock, subject: .text(deadlock)) }
        return outer
    }

    /// The thread of the loop waits no more.
    func leave(_ loop: ThreadRunLoop, for outer: Wait?) {
        let wait = waits.withLock { waits in
            let wait = waits[ObjectIdentifier(loop)]
            waits[ObjectIdentifier(loop)] = outer
            return wait
        }
        withExtendedLifetime(wait) {}
    }

    /// One look at the graph. Holds what it has looked at.
    private struct Search {
        let waits: [ObjectIdentifier: Wait]
        var servers: [ObjectIdentifier: [ThreadRunLoop]] = [:]
        var sources: [RunLoopSource] = []

        init(_ waits: [ObjectIdentifier: Wait]) {
            self.waits = waits
        }

        /// Whether only threads can be reached that wait for each other.
        mutating func findsNobody(serving first: PortCore) -> Bool {
            var ports = [first]
            while let port = ports.popLast() {
                if servers[ObjectIdentifier(port)] != nil { continue }
                if port.isInherited || port.mayServeSenders { return false }
                if port.receivesElsewhere.load(ordering: .relaxed) { return false }
                let sources = port.state.withLock { $0.sources }
                self.sources += sources
                let loops = sources.flatMap(\.loops)
                if loops.isEmpty { return false }
                servers[ObjectIdentifier(port)] = loops
                for loop in loops {
                    guard let next = blocked(loop), !sources.contains(where: { loop.contains($0, in: .portReply) })
                    else { return false }
                    ports.append(next)
                }
            }
            return true
        }

        /// The port that the loop's thread waits for, when only that port's receiver can end the wait.
        private func blocked(_ loop: ThreadRunLoop) -> PortCore? {
            guard let wait = waits[ObjectIdentifier(loop)], wait.slot.isWaiting, wait.slot.isBound else { return nil }
            return wait.port
        }

        /// One way from the port to the loop, in words.
        func story(from first: PortCore, to end: ThreadRunLoop) -> String {
            var (port, text) = (first, "It would wait for \(first.label)")
            for _ in 0..<servers.count {
                guard let loops = servers[ObjectIdentifier(port)] else { break }
                if loops.contains(end) { return text + ", which this thread serves." }
                guard let next = loops.lazy.compactMap(blocked).first else { break }
                text += ", whose thread waits for \(next.label)"
                port = next
            }
            return text + "."
        }
    }
}

extension SendRight {
    /// Calls `body`, in which the loop's thread waits for the slot in the private mode.
    ///
    /// - Throws: `wouldDeadlock` before the body is called; what the body throws.
    func waiting<Success>(
        on loop: ThreadRunLoop, for slot: ReplySlot, _ body: () throws(PortError) -> Success
    ) throws(PortError) -> Success {
        guard let port = destination as? PortCore, !port.isInherited else { return try body() }
        let outer = try WaitGraph.shared.enter(loop, WaitGraph.Wait(port: port, slot: slot))
        defer { WaitGraph.shared.leave(loop, for: outer) }
        return try body()
    }
}
