// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import MessagePort
import RunLoopCore
import Synchronization

extension FarSide {
    /// Does what is about a right.
    func performOnSender(_ order: Order, _ parts: MachMessage) throws(PortError) -> Parcel<Answer> {
        if order.deed == .connect { return try connect(order, parts) }
        let sender = sender(order.subject)
        let (right, lines) = (sender.right, sender.lines)
        switch order.deed {
        case .send:
            if order.numbers.first == 0 {
                return Parcel(Answer(numbers: [try right.trySend(parts) ? 1 : 0]))
            }
            try right.send(parts, within: serviceTimeout)
            return Parcel(Answer(numbers: [1]))
        case .sendMany:
            let (count, size) = (order.numbers[0], order.numbers[1])
            sender.perform { () throws(PortError) in
                for id in 0..<count {
                    let message = MachMessage(id: Int32(id), bytes: pattern(size))
                    try right.send(message, within: serviceTimeout)
                }
                lines.say("sent")
            }
        case .fill: return Parcel(Answer(numbers: [try right.sendUntilFull(bytes: order.numbers[0])]))
        case .requestNow:
            let reply = try right.request(parts, sendLimit: serviceTimeout, replyLimit: serviceTimeout)
            return Parcel(
                Answer(), MachMessage(id: reply.id, components: reply.components, replyPort: reply.replyPort))
        case .isDead: return Parcel(Answer(numbers: [right.isDead ? 1 : 0]))
        case .request: sender.request(parts)
        case .cancel: sender.task.withLock { $0 }?.cancel()
        default: fatalError("\(order.deed) is not about a right.")
        }
        return Parcel(Answer())
    }

    private func connect(_ order: Order, _ parts: MachMessage) throws(PortError) -> Parcel<Answer> {
        var right = parts.rights.first
        if let path = order.texts.first {
            right = try RightsTable.connect(to: PortAddress(path: path)).map { SendRight($0) }
        }
        guard let right else { throw PortError(.deadName) }
        let sender = try Sender(right)
        return Parcel(Answer(numbers: [add { $0.senders[$1] = sender }]))
    }
}

extension SendRight {
    /// Sends messages until the queue, and the buffers on the way, are full.
    ///
    /// - Returns: how many were sent; their ids are 0, 1, 2 and so on.
    package func sendUntilFull(bytes: Int) throws(PortError) -> Int {
        // The limit of a queue and a socket's buffer are both far smaller.
        for id in 0..<1_000_000 {
            if try !trySend(MachMessage(id: Int32(id), bytes: [UInt8](repeating: 7, count: bytes))) { return id }
        }
        fatalError("The queue never became full.")
    }
}

extension FarSide.Sender {
    /// Calls a closure on the thread; says the error that it throws.
    func perform(_ body: @escaping @Sendable () throws(PortError) -> Void) {
        thread.loop.perform(in: [.common]) { [lines] in
            do throws(PortError) {
                try body()
            } catch {
                lines.say(sentence(error))
            }
        }
    }

    /// Requests in a task, and says what came of it.
    func request(_ message: MachMessage) {
        let task = Task { [right, lines] in
            let limit = serviceTimeout
            do throws(PortError) {
                let reply = try await right.request(message, sendLimit: limit, replyLimit: limit)
                lines.say("reply \(reply.id)")
            } catch {
                lines.say("\(sentence(error)), \(error.delivery)")
            }
        }
        self.task.withLock { $0 = task }
    }
}
