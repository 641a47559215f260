// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort
import RunLoopCore
import Synchronization

extension FarSide {
    /// Does what is about a port.
    func performOnPort(_ order: Order, _ parts: MachMessage) throws(PortError) -> Parcel<Answer> {
        if order.deed == .makePort { return try makePort(order, parts) }
        let side = port(order.subject)
        let (port, lines) = (side.port, side.lines)
        switch order.deed {
        case .makeRight: return Parcel(Answer(), MachMessage(components: [.right(port.makeSendRight())]))
        case .address: return Parcel(Answer(texts: [try port.localPort.address().path]))
        case .invalidate: port.invalidate()
        case .statistics:
            let numbers = [
                port.queueCount, port.queueHighWaterMark, port.droppedMessageCount, port.queueLimit,
                port.isValid ? 1 : 0, port.localPort.connectionCount,
            ]
            return Parcel(Answer(numbers: numbers))
        case .receiveFromSockets: port.localPort.receiveFromSockets()
        case .settle: try? side.thread?.performAndWait(within: serviceTimeout) {}
        case .awaitNoSenders:
            guard let loop = side.thread?.loop else { fatalError("No thread serves port \(order.subject).") }
            try port.notifyWhenNoSenders(on: loop) { lines.say("no senders") }
        case .awaitEnd: port.setInvalidationHandler { lines.say("invalidated") }
        case .replyRetained: try side.servant.takeOldest()?.reply(parts, within: serviceTimeout)
        case .queryRetained: return facts(of: side.servant.retained.withLock { $0[order.numbers[0]] })
        default: fatalError("\(order.deed) is not about a port.")
        }
        return Parcel(Answer())
    }

    private func makePort(_ order: Order, _ parts: MachMessage) throws(PortError) -> Parcel<Answer> {
        guard order.texts.count == 2, order.numbers.count == 2, let service = Service(rawValue: order.texts[0]) else {
            fatalError("This makes no port: \(order).")
        }
        let lines = Lines()
        let servant = Servant(other: parts.rights.first, say: lines.say)
        let port = MachPort(
            queueLimit: order.numbers[0], queuePolicy: policy(order.texts[1]), handler: service.handler(of: servant))
        if let directory { _ = try port.localPort.address(in: directory) }
        let thread = order.numbers[1] == 0 ? nil : try startThread("far port")
        if let thread { try port.schedule(on: thread.loop) }
        let side = Port(port: port, servant: servant, lines: lines, thread: thread)
        return Parcel(Answer(numbers: [add { $0.ports[$1] = side }]))
    }

    private func policy(_ text: String) -> QueuePolicy {
        switch text {
        case "keepLatest": .keepLatest
        case "dropOldest": .dropOldest
        default: .refuse
        }
    }
}
