// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// A port on its way to another process, inside a message. Until its receiver has taken it, or it was taken back, the
/// port receives nothing and dequeues nothing; its senders wait.
protocol PortMove: AnyObject, Sendable {
    /// What travels: one end of a pair of sockets, with all that the port consists of inside.
    var descriptor: SharedDescriptor { get }
    /// Over what its receiver answers.
    var offer: PortOffer { get }
    /// The receiver has taken it. What is sent here from now on is sent there.
    func commit()
    /// It goes on here, as if nothing had happened. Does nothing after `commit`.
    func cancel()
}

/// A port that has come in a message, and is not this process's yet: nothing of it was changed.
protocol PortArrival: AnyObject, Sendable {
    /// What it has come in.
    var socket: SharedDescriptor { get }
    /// This process has taken it. It ends where the system lacks what it needs.
    func complete()
    /// It is another process's: closes this process's descriptors, and nobody notices.
    func giveUp()
}

/// The ports that one message has brought.
struct PortArrivals: ~Copyable, Sendable {
    private var arrivals: [any PortArrival] = []
    /// Why this process does not take them.
    private(set) var refusal: PortError.Code?
    /// What they occupy.
    private(set) var cost = ResourceUsage()

    var isEmpty: Bool { arrivals.isEmpty && refusal == nil }

    /// Adds a port that has come in a descriptor, if this process can take it.
    ///
    /// - Parameters:
    ///   - socket: the descriptor.
    ///   - findRoom: finds what the sender may occupy; nil where no port is accepted.
    ///   - unpack: makes the port, as large as there is room.
    /// - Returns: what `unpack` has made; nil when it, or another one, is refused.
    mutating func add<Result>(
        _ socket: SharedDescriptor, within findRoom: () -> ResourceUsage?,
        _ unpack: (ResourceUsage) throws(PortError) -> (Result, any PortArrival, cost: ResourceUsage)
    ) -> Result? {
        if refusal != nil { return nil }
        do throws(PortError) {
            guard var room = findRoom() else { throw PortError(.notTransferable) }
            room -= cost
            let (result, arrival, taken) = try unpack(room)
            arrivals.append(arrival)
            cost += taken
            return result
        } catch {
            refusal = error.code
            // The first answers for all.
            PortTransfer.refuse(error.code, over: arrivals.first?.socket ?? socket)
            return nil
        }
    }

    /// Takes the ports, unless the message could not be decoded, or they were taken back.
    ///
    /// - Returns: whether they are this process's.
    mutating func settle(isDecoded: Bool) -> Bool {
        guard let first = arrivals.first else { return refusal == nil }
        let isTaken = isDecoded && refusal == nil && PortTransfer.take(first.socket)
        for arrival in arrivals { if isTaken { arrival.complete() } else { arrival.giveUp() } }
        return isTaken
    }
}
