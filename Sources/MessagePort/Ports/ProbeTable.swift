// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// What this process knows of probes: which waits each has reached here, and which answers are missing. A plain value:
// it decides, and `WaitProbes` acts.
//
//   a probe comes ──enter──▶ passed on, answers missing ──the last answer──▶ done
//                    ╰──nothing new was reached──▶ done
//
// A wait is passed through once for each probe: what reaches it again is answered at once, because the first answers
// for it: see `WaitProbes`. An entry is over after a while, answered or not, or when many newer probes have come about
// its request: the last that comes is mostly the one that finds a circle.

import PortSystem

/// A wait that a probe reaches.
struct WaitKey: Hashable, Sendable {
    let number: WaitNumber
    /// The request that it awaits the reply to, when that went to another process; nil for a wait in memory, which was
    /// followed already.
    let token: RequestToken?
}

struct ProbeTable<Source: Sendable>: Sendable {
    /// What one request, or one wait of this process, has let a probe reach.
    struct Entry: Sendable {
        let probe: WaitProbe
        let source: Source
        /// The request along which the probe has come; nil when it has started here.
        let request: RequestToken?
        fileprivate let date: MonotonicInstant
        let reached: Set<WaitKey>
        /// The requests about which the next process is asked.
        fileprivate(set) var missing: Set<RequestToken>
        /// Whether the wait that has started the probe was reached.
        fileprivate(set) var hasReturned: Bool
    }

    enum Step: Sendable {
        /// Asks about these requests.
        case passOn(Set<RequestToken>)
        /// All that was reached only waits.
        case done(Entry)
    }

    private var entries: [WaitProbe: [Entry]] = [:]
    /// The probes that have come along each request, the oldest first.
    private var newest: [RequestToken: [WaitProbe]] = [:]
    /// When what is old is removed next.
    private var nextRemoval = MonotonicInstant.distantPast

    /// How many there are.
    var count: Int { entries.values.reduce(0) { $0 + $1.count } }

    /// A probe has come, along a request, or starts here, and reaches these waits.
    mutating func enter(
        _ probe: WaitProbe, from source: Source, along request: RequestToken?, reaching reached: Set<WaitKey>,
        at now: MonotonicInstant
    ) -> Step {
        if let request { makeRoom(along: request) }
        let others = entries[probe] ?? []
        var entry = Entry(
            probe: probe, source: source, request: request, date: now, reached: reached, missing: [],
            hasReturned: false)
        for wait in reached {
            if wait.number == probe.start, request != nil || wait.token == nil {
                entry.hasReturned = true
            } else if let token = wait.token, !others.contains(where: { $0.reached.contains(wait) }) {
                entry.missing.insert(token)
            }
        }
        entries[probe] = others + [entry]
        if let request { newest[request, default: []].append(probe) }
        return entry.missing.isEmpty ? .done(entry) : .passOn(entry.missing)
    }

    /// The next process has answered about a request.
    ///
    /// - Returns: the entry that is done with that; nil when others are missing, or it was not asked.
    mutating func answer(_ probe: WaitProbe, about token: RequestToken, hasReturned: Bool) -> Entry? {
        guard let index = entries[probe]?.firstIndex(where: { $0.missing.contains(token) }) else { return nil }
        entries[probe]?[index].missing.remove(token)
        if hasReturned { entries[probe]?[index].hasReturned = true }
        guard let entry = entries[probe]?[index], entry.missing.isEmpty else { return nil }
        return entry
    }

    /// Removes what is old, unless that was done a short time ago.
    ///
    /// - Returns: when to call this again; nil when there is nothing left, or an earlier call has returned that.
    mutating func removeOld(_ now: MonotonicInstant) -> MonotonicInstant? {
        if now < nextRemoval { return nil }
        let left = entries.values.joined().filter { $0.date.advanced(by: Tuning.probeLifetime) > now }
        entries = Dictionary(grouping: left, by: \.probe)
        newest = [:]
        for entry in left.sorted(by: { $0.date < $1.date }) {
            if let request = entry.request { newest[request, default: []].append(entry.probe) }
        }
        nextRemoval = left.isEmpty ? .distantPast : now.advanced(by: Tuning.probeLifetime)
        return left.isEmpty ? nil : nextRemoval
    }

    /// Removes the oldest entry of a request that has as many as it may have.
    private mutating func makeRoom(along request: RequestToken) {
        guard let probes = newest[request], probes.count >= Tuning.probesPerRequest else { return }
        newest[request]?.removeFirst()
        let index = entries[probes[0]]?.firstIndex { $0.request == request }
        if let index { entries[probes[0]]?.remove(at: index) }
        if entries[probes[0]]?.isEmpty == true { entries[probes[0]] = nil }
    }
}

/// When the probes of one wait start: after a while, and then after twice the time each. What closes a circle is mostly
/// a wait, but it may be a port that leaves a loop, or a handler that returns.
struct ProbeSchedule: Sendable {
    private let start: MonotonicInstant
    /// How many have started.
    private(set) var count = 0
    /// When the next one starts.
    var next: MonotonicInstant { start.advanced(by: Tuning.timeUntilProbe * ((1 << min(count + 1, 30)) - 1)) }

    init(from start: MonotonicInstant) { self.start = start }

    mutating func begin() { count += 1 }
}
