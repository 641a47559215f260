// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import MessagePort

/// A right that the far side holds. It is released there with this object.
final class FarSender: Sendable {
    private let link: FarLink
    private let number: Int32

    init(_ link: FarLink, _ number: Int) {
        (self.link, self.number) = (link, Int32(number))
    }

    deinit {
        _ = try? link.order(Order(.letGo, number))
    }

    func send(_ message: MachMessage) throws(PortError) {
        try link.portOrder(Order(.send, number, numbers: [1]), message)
    }

    func trySend(_ message: MachMessage) throws(PortError) -> Bool {
        try link.portOrder(Order(.send, number, numbers: [0]), message).note.numbers == [1]
    }

    /// Requests, and waits for the reply.
    func ask(_ message: MachMessage) throws(PortError) -> MachMessage {
        try link.portOrder(Order(.requestNow, number), message).parts
    }

    /// Sends messages until the queue, and the buffers on the way, are full.
    ///
    /// - Returns: how many were sent; their ids are 0, 1, 2 and so on.
    func fill(bytes: Int = 0) throws -> Int32 {
        Int32(try link.order(Order(.fill, number, numbers: [bytes])).note.numbers[0])
    }

    var isDead: Bool { get throws { try link.order(Order(.isDead, number)).note.numbers == [1] } }

    /// Begins to send messages with the ids from 0 on; says "sent" or the error.
    func beginSending(_ count: Int, size: Int = 0) throws {
        try link.order(Order(.sendMany, number, numbers: [count, size]))
    }

    /// Begins a request; says "reply ID" or the error and what became of the request.
    func beginRequest(_ message: MachMessage) throws {
        try link.order(Order(.request, number), message)
    }

    /// Cancels the request.
    func cancel() throws { try link.order(Order(.cancel, number)) }

    /// Waits until `count` lines were printed.
    func lines(_ count: Int) throws -> [String] {
        try link.order(Order(.lines, number, numbers: [count])).note.texts
    }
}
