// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Identifies a synchronous wait among those of all processes, and orders them. The time is that at which the wait was
/// noticed first, by itself or by a probe, on the clock that all processes share; the other part cannot be guessed.
package struct WaitNumber: Hashable, Comparable, Sendable {
    let time: UInt64
    let secret: UInt64

    package static func < (left: WaitNumber, right: WaitNumber) -> Bool {
        (left.time, left.secret) < (right.time, right.secret)
    }
}

/// One search for what a wait depends on: see `WaitProbes`.
package struct WaitProbe: Hashable, Sendable {
    /// The wait that has started it.
    let start: WaitNumber
    /// Another for each probe of the wait. It cannot be guessed.
    let round: Int32
}

/// A request over a connection of this process, of either end's: the connection's number, and the token there.
package struct RequestToken: Hashable, Sendable {
    let connection: UInt64
    let token: UInt64

    /// Stands for the tokens of all requests of a connection that have not come.
    static let notHere: UInt64 = 0
}

extension PacketHeader {
    /// Asks whether a thread may answer the request that asked with the token, or will.
    init(_ probe: WaitProbe, about token: UInt64) {
        self.init(
            kind: .probe, messageID: probe.round, asks: token, answers: probe.start.time,
            totalLength: probe.start.secret)
    }

    /// Answers that none may: only threads that wait can be reached, and perhaps the one that has started the probe.
    init(answering probe: WaitProbe, about token: UInt64, hasReturned: Bool) {
        self.init(
            kind: .probeAnswer, messageID: probe.round, componentCount: hasReturned ? 1 : 0, asks: probe.start.time,
            answers: token, totalLength: probe.start.secret)
    }

    /// What a packet of kind 18 or 19 is about.
    var probe: WaitProbe {
        let time = kind == .probe ? answers : asks
        return WaitProbe(start: WaitNumber(time: time, secret: totalLength), round: messageID)
    }
}
