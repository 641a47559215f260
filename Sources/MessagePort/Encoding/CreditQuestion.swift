// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// What a client asks about the room for its connection.
struct CreditQuestion: Sendable {
    enum Purpose: UInt32, Sendable {
        /// Whether it may send.
        case room = 1
        /// The same; without room it waits.
        case wait = 2
        /// That what it has sent is received, as far as the queue has room.
        case reading = 3
        /// The same; and that also without room some messages are received, and the probes behind them.
        case probing = 4
    }

    let key: UInt64
    let purpose: Purpose
    /// Where the client counts what it sends.
    var sentCount: SharedDescriptor?
}

/// Where a client reads what it may send.
struct CreditGrant: Sendable {
    /// Nil when the client has it.
    let page: GrantPage?
    let index: Int
}

/// The answer to a question.
enum CreditAnswer: Sendable {
    case granted(CreditGrant)
    case full
    /// Another answer comes when there is room.
    case waiting
    /// What was sent has been received, as far as the queue has room.
    case received
    /// The port has no memory for it.
    case refused
    /// The connection's own packet, with its number, has not come yet.
    case unknown

    var isGrant: Bool { if case .granted = self { true } else { false } }
    var lacksRoom: Bool {
        switch self {
        case .full, .waiting: true
        case .granted, .received, .refused, .unknown: false
        }
    }
    var mayChangeByReceiving: Bool { if case .unknown = self { true } else { false } }
}

extension OutgoingPacket {
    /// The answer to the question of a connection with this number.
    init(_ answer: CreditAnswer, to key: UInt64) {
        var header = PacketHeader(kind: .credit, answers: key)
        switch answer {
        case .full, .unknown: header.componentCount = 1
        case .waiting: header.componentCount = 2
        case .received: header.componentCount = 3
        case .granted(let grant):
            header.componentCount = 4
            header.messageID = Int32(clamping: grant.index)
            header.descriptorCount = grant.page == nil ? 0 : 1
        case .refused: header.componentCount = 5
        }
        self.init(header: header)
        if case .granted(let grant) = answer, let page = grant.page { descriptors = [page.file] }
    }
}
