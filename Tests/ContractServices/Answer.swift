// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import MessagePort

/// The result of an ``Order``. The parts of a message may go with it.
package struct Answer: Sendable {
    package var numbers: [Int]
    package var texts: [String]
    /// What the library threw.
    package var error: PortError?

    package init(numbers: [Int] = [], texts: [String] = [], error: PortError? = nil) {
        (self.numbers, self.texts, self.error) = (numbers, texts, error)
    }
}

extension Answer: MessageContent {
    package init(from reader: inout MessageReader) throws(PortError) {
        self.init(numbers: try reader.read(), texts: try reader.read())
        guard let code: UInt8 = try reader.read() else { return }
        let delivery: UInt8 = try reader.read()
        guard let code = PortError.Code.all.first(where: { $0.rawValue == code }) else {
            throw PortError(.malformedContent)
        }
        error = PortError(code, delivery: PortError.Delivery(rawValue: delivery))
    }

    package func write(to writer: inout MessageWriter) {
        writer.write(numbers)
        writer.write(texts)
        writer.write(error?.code.rawValue)
        if let error { writer.write(error.delivery.rawValue) }
    }
}

/// An order or an answer, and the parts that go with it.
package struct Parcel<Note: MessageContent & Sendable>: Sendable {
    package var note: Note
    /// Its id and its parts; the reply port counts among them.
    package var parts: MachMessage

    package init(_ note: Note, _ parts: MachMessage = MachMessage()) {
        (self.note, self.parts) = (note, parts)
    }

    /// Unpacks a message.
    package init(unpacking message: MachMessage) throws(PortError) {
        let parts = MachMessage(
            id: message.id, components: Array(message.components.dropFirst()), replyPort: message.replyPort)
        self.init(try message.content(), parts)
    }

    /// A message that has all of it.
    package var packed: MachMessage {
        var message = MachMessage(id: parts.id, content: note, replyPort: parts.replyPort)
        message.components += parts.components
        return message
    }
}
