// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort

extension PacketAssembly.Event {
    var text: String {
        switch self {
        case .incomplete: "incomplete"
        case .tooLarge(let asks): "too large, asks \(asks)"
        case .unwanted(let asks): "unwanted, asks \(asks)"
        case .message(let message, let asks, let answers):
            "message \(message.id) \(message.payload + message.tail) asks \(asks) answers \(answers)"
        case .withoutDescriptors(let asks, let answers): "without descriptors, asks \(asks) answers \(answers)"
        case .replyDropped(let token, let reason, let delivery): "reply \(token) dropped because \(reason), \(delivery)"
        case .replyFailed(let token, let code, let text): "reply \(token) failed with \(code) \(text)"
        case .abandoned(let token): "abandoned \(token)"
        case .portEnded: "port ended"
        case .portMoved: "port moved"
        case .ownerNamed: "owner named"
        case .handOverAsked(let question): "hand over to \(question.successor.path) within \(question.limit)"
        case .handOverAnswered(let answer): "handed over: \(answer)"
        case .statisticsAsked(let token): "asked at \(token)"
        case .statistics(let statistics, let token): "\(statistics.messageCount) messages at \(token)"
        case .tapAsked(let limit): "tap \(limit)"
        case .tapAnswered(let isAllowed): "tapped: \(isAllowed)"
        case .creditOpened(let key): "credit \(key)"
        case .creditAsked(let question): "credit \(question.key): \(question.purpose)"
        case .probed(let probe, let token):
            "probe \(probe.start.secret) of \(probe.start.time), round \(probe.round), about \(token)"
        case .probeAnswered(let probe, let token, let hasReturned):
            "\(Self.probed(probe, token: token).text): \(hasReturned)"
        case .shown(let message): "shown \(message.number): \(message.id) \(message.bytes)"
        case .presence(let end): end == nil ? "presence, lost" : "presence"
        case .returnPage(let file, let lender): "return page\(file == nil ? ", lost" : "") to \(lender)"
        case .returned(let number, let lender, let isUnknown):
            "returned \(number) to \(lender), unknown segment: \(isUnknown)"
        case .segmentEnded(let number, let lender): "segment \(number) of \(lender) ended"
        case .refused(let code): "refused \(code)"
        case .violation: "violation"
        }
    }
}
