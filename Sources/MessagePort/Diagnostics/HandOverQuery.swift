// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

extension PortError.StaticReason {
    fileprivate static let notAllowed = Self(
        "its owner does not let it be handed over; have its program call setAllowsHandOver(true)")
    fileprivate static let ownersError = Self("its owner could not hand it over")
}

/// Asks the owner of a port to hand it over to another one, over a connection of its own.
package enum HandOverQuery {
    /// Asks, and waits until it is done.
    ///
    /// - Parameters:
    ///   - address: the port.
    ///   - successor: a right to a port of another process.
    ///   - limit: how long the owner may wait for what has to end before.
    /// - Throws: `notTransferable` when its owner does not allow it, or cannot do it; the owner's error; `deadName` when
    ///   no process listens there, `peerDied` when it ended meanwhile, `replyTimedOut` when no answer came; the errors of
    ///   a connection to the port.
    package static func ask(
        _ address: PortAddress, for successor: SendRight, within limit: Duration
    ) throws(PortError) {
        let deadline = MonotonicInstant.after(limit)
        let question = HandOverQuestion(successor: try successor.destination.address(), limit: limit)
        switch try answer(to: question, at: address, until: deadline.advanced(by: Tuning.handOverMargin)) {
        case .done: return
        case .notAllowed: throw PortError(.notTransferable, subject: .reason(.notAllowed))
        case .failed(let number):
            guard let code = PortError.Code.all.first(where: { Int32($0.rawValue) == number }),
                code != .notTransferable
            else { throw PortError(.notTransferable, subject: .reason(.ownersError)) }
            throw PortError(code)
        }
    }

    private static func answer(
        to question: HandOverQuestion, at address: PortAddress, until deadline: MonotonicInstant
    ) throws(PortError) -> HandOverAnswer {
        let packet = question.packet
        switch try ProcessEndpoints.connect(toPath: address.path, until: deadline) {
        case .busy: throw PortError(.replyTimedOut)
        case .dead: throw PortError(.deadName)
        case .connected(let socket, _):
            guard let query = try PortQuery(packet.header, payload: packet.payload, over: socket) else {
                throw PortError(.deadName)
            }
            while true {
                if try PortError.converting(sysPoll(query.rawValue, .readable, until: deadline)).isEmpty {
                    throw PortError(.replyTimedOut)
                }
                switch try PortError.converting(query.receive()) {
                case .handOverAnswered(let answer): return answer
                // The question went with the port to its next owner.
                case .portMoved, .ownerNamed: continue
                // An owner that does not know the query refuses it.
                case .refused: return .notAllowed
                case .portEnded: throw PortError(.deadName)
                case nil: throw PortError(.peerDied)
                default: throw PortError(.malformedPacket)
                }
            }
        }
    }
}
