// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Circles of requests across processes. `WaitGraph` sees the waits of this process; a probe follows them into others.
//
// A wait that has lasted for a while starts a probe: a question along its request to the process that owes the reply.
// If only threads that wait serve the port there, that process asks on, along the requests for which they wait. It
// answers when all those are answered, and drops the question when a thread may serve the port. So an answer means that
// all that can be reached only waits. This is the detection of Chandy, Misra and Haas for requests of which any one
// server suffices.
//
// Never falsely. Suppose that a wait which was reached ends after that, and take the first that does. A thread has
// answered it, which was reached too, and therefore before that thread's wait. But then the process that owed the reply
// did not answer the probe: it does so only while the reply is owed, after it was asked.
//
// Never missed. In a circle take the wait with the highest number. A wait gets its number when it starts a probe, or
// when a probe reaches it. So when that wait started its own, all others had lower numbers: one without would have got
// a higher one then, or later. A wait passes on the probes of waits with higher numbers only: so that probe comes
// around, and all others do not. Of a circle one wait is refused, and of a wait that only leads into a circle, none:
// the probe must have come back.
//
// What has reached a wait by one way is not asked again by another: it is answered at once. This is sound because the
// first way leads from the wait that has started the probe as well: that is refused only when each process on the way,
// from this one back, was answered too. It holds where processes ask only along the requests that the probe has
// reached, and answer only when they were answered. One that does not may ask ahead of the others: these are answered
// at once then, and do not wait for what it was asked to wait for. So each probe has a number that cannot be guessed:
// only a process that it has reached can do that, one that the request depends on, perhaps beside others.
//
// A request that still waits for room is asked about by the token that it will have. Where it has not come, only the
// threads that serve the port can make room for it, and answer it afterwards: it counts as queued. Where it has come and
// was answered, that is not distinguished, and does no harm: the reply was sent before the answer to the probe, which its
// process therefore drops.
//
// What changes other than by a wait, a port that leaves a loop or a handler that returns, may close a circle later:
// probes are repeated, twice as late each time.

import PortSystem
import RunLoopCore
import Synchronization

enum WaitProbes {
    /// What has let a probe in.
    enum Source: Sendable {
        /// The wait that has started it.
        case wait(WeakReference<Shared<WaitGraph.Wait>>)
        /// A request that came over the connection under the token.
        case request(UInt64, WeakReference<SocketConnection>)
    }

    private static let table = Mutex(ProbeTable<Source>())

    /// Starts a probe for a wait of the thread of a loop, the calling one.
    static func start(for wait: Shared<WaitGraph.Wait>, on loop: ThreadRunLoop) {
        // What has come for its ports: other threads read that only when the peer can ask for it.
        for case let port as LocalPort in RightsTable.shared.ownPorts
        where !port.isInherited && port.isServed(by: loop) {
            port.sockets?.receiveArrivals(besides: nil, exceedingLimit: true)
        }
        let probe = WaitProbe(start: wait.value.slot.waitNumber, round: .random(in: .min ... .max))
        proceed(probe, from: .wait(WeakReference(wait)), along: nil)
    }

    /// A process asks about its request.
    static func follow(_ probe: WaitProbe, about token: UInt64, over connection: SocketConnection) {
        // All that have not come count as one: a peer may name as many as it likes.
        let counted = connection.hasRequest(token) ? token : RequestToken.notHere
        let request = RequestToken(connection: connection.number, token: counted)
        proceed(probe, from: .request(token, WeakReference(connection)), along: request)
    }

    private static func proceed(_ probe: WaitProbe, from source: Source, along request: RequestToken?) {
        guard let waits = waits(reachedFrom: source, by: probe) else { return }
        let reached = Set(waits.map(\.reached))
        let now = MonotonicInstant.now
        let step = table.withLock { $0.enter(probe, from: source, along: request, reaching: reached, at: now) }
        removeOld(now)
        switch step {
        case .passOn(var tokens):
            for wait in waits {
                guard let token = wait.reached.token, tokens.remove(token) != nil else { continue }
                wait.pass(probe, about: token.token)
            }
        case .done(let entry): finish(entry)
        }
    }

    /// Removes what is old, now and as long as there is any.
    private static func removeOld(_ now: MonotonicInstant) {
        guard let next = table.withLock({ $0.removeOld(now) }), let loop = try? IOThread.loop() else { return }
        loop.add(RunLoopTimer(fireDate: next) { _ in removeOld(.now) })
    }

    /// The process to which a request went has answered.
    static func didAnswer(_ probe: WaitProbe, about token: RequestToken, hasReturned: Bool) {
        let done = table.withLock { $0.answer(probe, about: token, hasReturned: hasReturned) }
        if let done { finish(done) }
    }

    /// All that was reached only waits, if it is still the same.
    private static func finish(_ entry: ProbeTable<Source>.Entry) {
        guard let waits = waits(reachedFrom: entry.source, by: entry.probe),
            Set(waits.map(\.reached)) == entry.reached
        else { return }
        switch entry.source {
        case .wait(let wait): if entry.hasReturned { wait.object?.value.refuse() }
        case .request(let token, let connection):
            connection.object?.answer(entry.probe, about: token, hasReturned: entry.hasReturned)
        }
    }

    /// The waits of this process that a probe reaches; nil when a thread may answer.
    private static func waits(reachedFrom source: Source, by probe: WaitProbe) -> [WaitGraph.Wait]? {
        switch source {
        case .wait(let wait):
            guard let wait = wait.object?.value else { return nil }
            var waits = wait.reached.token == nil ? nil : [wait]
            if let port = wait.port { waits = WaitGraph.waits(for: port, reachedBy: probe.start) }
            // Read last: until here the search found no thread that may answer.
            return wait.isBlocked ? waits : nil
        case .request(let token, let connection):
            // A request that is still to come may be answered before it is queued.
            guard let connection = connection.object, let port = connection.sink as? LocalPort,
                !port.mayServeSenders || connection.hasRequest(token),
                let waits = WaitGraph.waits(for: port, reachedBy: probe.start), connection.mayBeOwed(token)
            else { return nil }
            return waits
        }
    }
}

extension LocalPort {
    fileprivate func isServed(by loop: ThreadRunLoop) -> Bool {
        let sources = state.withLock { $0.sources.all }
        return sources.contains { $0.loops.contains(loop) }
    }

    func follow(_ probe: WaitProbe, about token: UInt64, over connection: SocketConnection) {
        WaitProbes.follow(probe, about: token, over: connection)
    }
}
