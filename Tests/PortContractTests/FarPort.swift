// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import PortSystem
import TestSupport
import Testing

/// How orders reach the far side of a test: a call in this process, a message to another.
struct FarLink: Sendable {
    let carryOut: @Sendable (Parcel<Order>) throws -> Parcel<Answer>

    /// There is no far side.
    static let none = FarLink { _ in throw PortError(.invalidPort) }

    /// Carries out an order.
    ///
    /// - Throws: what the library threw there.
    @discardableResult
    func order(_ order: Order, _ parts: MachMessage = MachMessage()) throws -> Parcel<Answer> {
        let parcel = try carryOut(Parcel(order, parts))
        if let error = parcel.note.error { throw error }
        return parcel
    }

    /// The same, for what throws nothing but errors of ports; any other is an issue of the test.
    @discardableResult
    func portOrder(_ order: Order, _ parts: MachMessage = MachMessage()) throws(PortError) -> Parcel<Answer> {
        do {
            return try self.order(order, parts)
        } catch let error as PortError {
            throw error
        } catch {
            Issue.record(error)
            return Parcel(Answer())
        }
    }
}

/// A port on the far side of a test. It is released there with this object.
final class FarPort: Sendable {
    let link: FarLink
    let number: Int32

    init(_ link: FarLink, _ number: Int) {
        (self.link, self.number) = (link, Int32(number))
    }

    deinit {
        _ = try? link.order(Order(.letGo, number))
    }

    /// The next message, with the watchdog's limit.
    func next(sourceLocation: SourceLocation = #_sourceLocation) throws -> FarMessage {
        try #require(try receive(waits: true), sourceLocation: sourceLocation)
    }

    func tryReceive() throws -> FarMessage? { try receive(waits: false) }

    private func receive(waits: Bool) throws -> FarMessage? {
        let parcel = try link.order(Order(.receive, number, numbers: [waits ? 1 : 0]))
        return parcel.note.numbers.isEmpty ? nil : FarMessage(link, parcel)
    }

    func invalidate() throws { try link.order(Order(.invalidate, number)) }

    /// Reads what has arrived into the queue, as a scheduled port does when its sockets are readable.
    func receiveFromSockets() throws { try link.order(Order(.receiveFromSockets, number)) }

    /// Waits until the port's thread has done what it has to do by now.
    func settle() throws { try link.order(Order(.settle, number)) }

    func notifyWhenNoSenders() throws { try link.order(Order(.awaitNoSenders, number)) }
    func setInvalidationHandler() throws { try link.order(Order(.awaitEnd, number)) }

    /// Waits until its service has printed `count` lines.
    ///
    /// - Returns: all lines.
    func lines(_ count: Int = 0) throws -> [String] {
        try link.order(Order(.lines, number, numbers: [count])).note.texts
    }

    /// Replies to the oldest message that its service retains.
    func replyRetained(_ message: MachMessage) throws(PortError) {
        try link.portOrder(Order(.replyRetained, number), message)
    }

    /// Whether the request that its service retains at the index is cancelled.
    func isRetainedCancelled(_ index: Int = 0) throws -> Bool {
        try link.order(Order(.queryRetained, number, numbers: [index])).note.numbers[1] == 1
    }

    private func statistic(_ index: Int) throws -> Int {
        try link.order(Order(.statistics, number)).note.numbers[index]
    }

    var queueCount: Int { get throws { try statistic(0) } }
    var droppedMessageCount: Int { get throws { try statistic(2) } }
    var queueLimit: Int { get throws { try statistic(3) } }
    var isValid: Bool { get throws { try statistic(4) == 1 } }
    var connectionCount: Int { get throws { try statistic(5) } }

    /// A right that the far side gives.
    func makeSendRight() throws -> SendRight {
        try #require(try link.order(Order(.makeRight, number)).parts.rights.first)
    }

    /// The port's address.
    func address() throws -> PortAddress {
        PortAddress(path: try #require(try link.order(Order(.address, number)).note.texts.first))
    }
}

/// A message that a port on the far side has received, and a copy of its parts. It is released there with this object.
final class FarMessage: Sendable {
    /// Its id and its parts.
    let copy: MachMessage
    let sender: PeerIdentity
    private let link: FarLink
    private let number: Int32

    init(_ link: FarLink, _ parcel: Parcel<Answer>) {
        let numbers = parcel.note.numbers
        self.link = link
        number = Int32(numbers[0])
        sender = PeerIdentity(processID: Int32(numbers[1]), userID: UInt32(numbers[2]), groupID: UInt32(numbers[3]))
        copy = parcel.parts
    }

    deinit {
        _ = try? link.order(Order(.letGo, number))
    }

    var id: Int32 { copy.id }
    var bytes: [UInt8] { copy.bytes }
    var text: String { copy.text }
    var components: [MachMessage.Component] { copy.components }
    var byteParts: [[UInt8]] { copy.byteParts }
    var rights: [SendRight] { copy.rights }
    var descriptors: [SharedDescriptor] { copy.descriptors }
    var replyPort: SendRight? { copy.replyPort }

    /// Whether it expects a reply now.
    var expectsReply: Bool { get throws { try link.order(Order(.ask, number)).note.numbers[0] == 1 } }
    /// Whether its requester has given up.
    var isCancelled: Bool { get throws { try link.order(Order(.ask, number)).note.numbers[1] == 1 } }

    /// Replies from the far side.
    func reply(_ message: MachMessage) throws(PortError) {
        try link.portOrder(Order(.reply, number), message)
    }

    /// Sends from the far side over a right inside the message; over its reply port when there is no index.
    func send(_ message: MachMessage, over index: Int? = nil) throws(PortError) {
        try link.portOrder(Order(.sendBack, number, numbers: [index ?? -1]), message)
    }
}
