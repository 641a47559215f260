// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import MessagePort

/// What a test has the far side do. The parts of a message may go with it.
package struct Order: Sendable {
    /// What to do. Its subject is a number that an earlier answer gave.
    package enum Deed: Int32, Sendable {
        /// Makes a port. Numbers: its limit; a thread serves it unless the other number is 0. Text: service, policy. A
        /// right among the parts is the one to hand on to.
        case makePort
        /// Gives a right to the port.
        case makeRight
        /// Gives the address of the port as text.
        case address
        /// Receives from the port; waits if the number is not 0. The answer has the message's parts unless it is 2.
        case receive
        /// Invalidates the port.
        case invalidate
        /// Returns the port's counts: queued, most queued, dropped, limit, whether it is valid, clients.
        case statistics
        /// Reads what has arrived into the port's queue.
        case receiveFromSockets
        /// Waits until the port's thread has done what it has to do by now.
        case settle
        /// Asks for a notice when the port has no senders: "no senders".
        case awaitNoSenders
        /// Sets the port's invalidation handler: "invalidated".
        case awaitEnd
        /// Waits until that many lines were said; returns all of them.
        case lines
        /// Replies to the message.
        case reply
        /// Returns whether the message expects a reply, and whether its request is cancelled.
        case ask
        /// Replies to the oldest message that the port's service holds, and releases it.
        case replyRetained
        /// Returns the same as ``ask`` for the message that the port's service holds at the number.
        case queryRetained
        /// Sends the parts over a right inside the message: the one of the number, or the reply port for -1.
        case sendBack
        /// Releases a port, a message or a right.
        case letGo
        /// Adopts a right: that among the parts, or a new connection to the address.
        case connect
        /// Sends the parts over the right; waits for room if the number is not 0. The answer's number is 1 when it was
        /// sent.
        case send
        /// Begins to send that many messages of that many bytes over the right. Says "sent", or the error.
        case sendMany
        /// Sends messages of that many bytes over the right, with the ids from 0 on, until there is no room. Returns
        /// how many.
        case fill
        /// Requests over the right, and waits. The answer has the reply's parts.
        case requestNow
        /// Returns whether the right is dead.
        case isDead
        /// Begins to request over the right. Says "reply ID", or the error.
        case request
        /// Cancels what was begun with the right.
        case cancel
        /// Counts the descriptors that the process has, but for those with which its loops sleep on words.
        case countDescriptors
        /// Kills the process.
        case die
    }

    package var deed: Deed
    /// What it is about: a port, a message or a right.
    package var subject: Int32
    package var numbers: [Int]
    package var texts: [String]

    package init(_ deed: Deed, _ subject: Int32 = 0, numbers: [Int] = [], texts: [String] = []) {
        (self.deed, self.subject, self.numbers, self.texts) = (deed, subject, numbers, texts)
    }
}

extension Order: MessageContent {
    package init(from reader: inout MessageReader) throws(PortError) {
        guard let deed = Deed(rawValue: try reader.read()) else { throw PortError(.malformedContent) }
        self.init(deed, try reader.read(), numbers: try reader.read(), texts: try reader.read())
    }

    package func write(to writer: inout MessageWriter) {
        writer.write(deed.rawValue)
        writer.write(subject)
        writer.write(numbers)
        writer.write(texts)
    }
}
