// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import MessagePort
import PortSystem
import RunLoopCore
import Synchronization

extension FarSide {
    /// How many descriptors the process has, once those of what was released, the memory of rings among them, are
    /// closed; without the pipes of rings, which a connection keeps once it has rings.
    private static func descriptorCount() -> Int {
        let deadline = MonotonicInstant.after(serviceTimeout)
        while !AsyncCloser.isIdle, .now < deadline { sched_yield() }
        let path = "/proc/self/fd"
        guard let names = try? sysList(path) else { return -1 }
        return names.count - DescriptorBudget.wakeChannels.count
    }

    func perform(_ order: Order, _ parts: MachMessage) throws(PortError) -> Parcel<Answer> {
        let number = order.numbers.first ?? 0
        switch order.deed {
        case .makePort, .makeRight, .address, .invalidate, .statistics, .receiveFromSockets, .settle, .awaitNoSenders,
            .awaitEnd,
            .replyRetained, .queryRetained:
            return try performOnPort(order, parts)
        case .receive: return try receive(port(order.subject).port, waits: number != 0, answersParts: number != 2)
        case .lines: return Parcel(Answer(texts: lines(of: order.subject).wait(for: number)))
        case .reply: try message(order.subject).reply(parts, within: serviceTimeout)
        case .ask: return facts(of: message(order.subject))
        case .sendBack:
            let message = message(order.subject)
            let right = number < 0 ? message.replyPort : message.rights[number]
            try right?.send(parts, within: serviceTimeout)
        case .letGo: letGo(order.subject)
        case .connect, .send, .sendMany, .fill, .requestNow, .isDead, .request, .cancel:
            return try performOnSender(order, parts)
        case .die: kill(sysProcessID(), SIGKILL)
        case .countDescriptors:
            return Parcel(Answer(numbers: [Self.descriptorCount()]))
        }
        return Parcel(Answer())
    }

    /// Adds a thing.
    ///
    /// - Returns: its number.
    func add(_ change: (inout Things, Int32) -> Void) -> Int {
        things.withLock { things in
            things.count += 1
            change(&things, things.count)
            return Int(things.count)
        }
    }

    func port(_ number: Int32) -> Port {
        guard let port = things.withLock({ $0.ports[number] }) else { fatalError("There is no port \(number).") }
        return port
    }

    func sender(_ number: Int32) -> Sender {
        guard let sender = things.withLock({ $0.senders[number] }) else { fatalError("There is no right \(number).") }
        return sender
    }

    /// Whether a message expects a reply, and whether its request is cancelled.
    func facts(of message: MachMessage) -> Parcel<Answer> {
        Parcel(Answer(numbers: [message.expectsReply ? 1 : 0, message.isCancelled ? 1 : 0]))
    }

    private func message(_ number: Int32) -> MachMessage {
        guard let message = things.withLock({ $0.messages[number] }) else {
            fatalError("There is no message \(number).")
        }
        return message
    }

    private func lines(of number: Int32) -> Lines {
        guard let lines = things.withLock({ $0.ports[number]?.lines ?? $0.senders[number]?.lines }) else {
            fatalError("Nothing with lines is \(number).")
        }
        return lines
    }

    private func letGo(_ number: Int32) {
        let (port, sender, message) = things.withLock { things in
            (
                things.ports.removeValue(forKey: number), things.senders.removeValue(forKey: number),
                things.messages.removeValue(forKey: number)
            )
        }
        withExtendedLifetime(message) {}
        if let port { end(port) }
        if let sender { end(sender) }
    }

    private func receive(_ port: MachPort, waits: Bool, answersParts: Bool) throws(PortError) -> Parcel<Answer> {
        guard let message = waits ? try port.receive(within: serviceTimeout) : try port.tryReceive() else {
            return Parcel(Answer())
        }
        let number = add { $0.messages[$1] = message }
        let sender = message.sender
        let numbers = [number, Int(sender.processID), Int(sender.userID), Int(sender.groupID)]
        if !answersParts { return Parcel(Answer(numbers: numbers)) }
        let parts = MachMessage(id: message.id, components: message.components, replyPort: message.replyPort)
        return Parcel(Answer(numbers: numbers), parts)
    }
}
