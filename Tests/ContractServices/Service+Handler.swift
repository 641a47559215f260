// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import MessagePort
import RunLoopCore
import Synchronization

extension Service {
    /// The handler of a port that serves so; nil for ``none``.
    package func handler(of servant: Servant) -> MachPort.Handler? {
        if self == .none { return nil }
        return { port, message in
            if perform(with: message, for: servant) { return }
            serve(port, message, servant)
        }
    }

    /// Services that read the message only.
    private func perform(with message: MachMessage, for servant: Servant) -> Bool {
        switch self {
        case .note: servant.say("\(message.id)")
        case .echo: servant.reply(to: message, message)
        case .echoAndSay:
            servant.say("\(message.id)")
            try? message.reply(MachMessage(id: message.id), within: serviceTimeout)
        case .accept:
            servant.say("\(message.text) \(message.id)")
            servant.reply(to: message, MachMessage(id: 1))
        case .measure: measure(message, servant)
        case .weigh: servant.reply(to: message, weighed(message))
        case .lend: lend(Int(message.id), message, servant)
        case .describe:
            guard let numbers = try? message.content(as: [Int32].self) else { break }
            servant.reply(to: message, MachMessage(content: numbers.map { "\($0)" as String? } + [nil]))
        case .refuse: refuse(message, servant)
        case .refuseAtLength: try? message.replyError(1, String(repeating: "\u{20ac}", count: 5_000))
        case .fail: message.takeReplyRight()?.fail(6, "six")
        case .letGo: letGo(message)
        case .keep: servant.keep(message)
        case .keepSeven:
            if message.id == 7 { servant.keep(message) } else { servant.reply(to: message, MachMessage(id: 2)) }
        case .handOn:
            if let other = servant.other { servant.handOn(message, as: message.id + 1, to: other) }
        case .keepAndHandOn:
            servant.keep(message)
            if let other = servant.other { servant.handOn(message, as: message.id + 1, to: other) }
        case .askBack:
            let limit = serviceTimeout
            let back = try? message.replyPort?.request(MachMessage(id: 7), sendLimit: limit, replyLimit: limit)
            servant.reply(to: message, MachMessage(id: back?.id ?? -1))
        case .askOther: askOther(message, servant)
        case .sendBack:
            try? message.replyPort?.send(MachMessage(id: 7), within: serviceTimeout)
            servant.reply(to: message, MachMessage(id: 8))
        default: return false
        }
        return true
    }

    /// Services that use the port, or remember.
    private func serve(_ port: MachPort, _ message: MachMessage, _ servant: Servant) {
        switch self {
        case .acts:
            guard let reply = servant.answer(port, message), message.expectsReply else { return }
            servant.reply(to: message, MachMessage(id: message.id, bytes: reply))
        case .reverse: reverse(message, servant)
        case .replyTwice:
            let copy = message
            servant.say(servant.outcome { () throws(PortError) in try message.reply(MachMessage(id: 1)) })
            servant.say(servant.outcome { () throws(PortError) in try copy.reply(MachMessage(id: 2)) })
        case .keepAndAwait:
            message.setCancellationHandler { servant.say("cancelled") }
            servant.keep(message)
        case .keepRight: keepRight(message, servant)
        case .late: late(message, servant)
        case .replyAndAwait:
            message.setCancellationHandler { servant.say("cancelled") }
            if message.id > 0 { servant.reply(to: message, MachMessage(id: message.id * 2)) }
        case .echoAndKeep:
            servant.keep(message)
            servant.reply(to: message, message)
            if message.id == 2 { port.invalidate() }
        case .busy:
            if message.id == 2 { return port.invalidate() }
            _ = try? port.makeSendRight().trySend(MachMessage(id: 1))
        case .worker: work(port, message, servant)
        case .end: port.invalidate()
        case .lastReply:
            port.invalidate()
            ThreadRunLoop.current.stop()
            servant.reply(to: message, MachMessage(id: 77))
        case .converse: converse(message, servant)
        default: break
        }
    }

    private func askOther(_ message: MachMessage, _ servant: Servant) {
        guard let other = servant.other else { return servant.say("no other port") }
        servant.say("asks")
        do throws(PortError) {
            let limit = serviceTimeout
            let reply = try other.request(MachMessage(id: message.id + 1), sendLimit: limit, replyLimit: limit)
            servant.reply(to: message, MachMessage(id: reply.id))
        } catch {
            servant.reply(to: message, MachMessage(id: -1, text: "\(error.code)"))
        }
    }

    private func reverse(_ message: MachMessage, _ servant: Servant) {
        if !message.expectsReply { servant.say("a request expects no reply") }
        servant.reply(to: message, MachMessage(id: message.id + 1, bytes: message.bytes.reversed()))
        if message.expectsReply { servant.say("a request that was answered expects a reply") }
    }

    private func measure(_ message: MachMessage, _ servant: Servant) {
        let (count, ends) = message.withBytes { bytes in
            guard !bytes.isEmpty else { return (0, [UInt8(0), 0]) }
            let last = bytes.byteCount - 1
            return (bytes.byteCount, [byte(bytes, 0), byte(bytes, last)])
        }
        servant.reply(to: message, MachMessage(id: Int32(count), bytes: ends))
    }

    private func weighed(_ message: MachMessage) -> MachMessage {
        var (count, bytes) = (0, [UInt8]())
        for memory in message.memory {
            count += memory.count
            bytes.append(memory.grade == .shared ? 0 : memory.grade == .sealed ? 1 : 2)
            memory.withBytes { span in
                if span.isEmpty { return bytes += [0, 0, 0] }
                var sum: UInt8 = 0
                for index in 0..<span.byteCount { sum &+= byte(span, index) }
                bytes += [byte(span, 0), byte(span, span.byteCount - 1), sum]
            }
        }
        return MachMessage(id: Int32(count), bytes: bytes)
    }

    private func lend(_ count: Int, _ message: MachMessage, _ servant: Servant) {
        guard var loan = try? servant.pool.tryLoan(count) else { return message.takeReplyRight()?.drop() ?? () }
        loan.withBytes { bytes in
            for index in 0..<count {
                bytes.storeBytes(of: UInt8(truncatingIfNeeded: count), toByteOffset: index, as: UInt8.self)
            }
        }
        servant.reply(to: message, MachMessage(id: message.id, memory: loan.freeze()))
    }

    private func byte(_ bytes: RawSpan, _ index: Int) -> UInt8 {
        // SAFETY: the caller has checked the count; a byte has no bits that are not allowed.
        unsafe bytes.unsafeLoad(fromByteOffset: index, as: UInt8.self)
    }

    private func refuse(_ message: MachMessage, _ servant: Servant) {
        if message.id == 0 { return servant.reply(to: message, MachMessage()) }
        try? message.replyError(message.id, message.text)
        servant.say(servant.outcome { () throws(PortError) in try message.replyError(1) })
        servant.say(servant.outcome { () throws(PortError) in try message.reply(MachMessage()) })
    }

    private func letGo(_ message: MachMessage) {
        switch message.id {
        case 0: break
        case 1: message.takeReplyRight()?.drop()
        default: _ = message.takeReplyRight()
        }
    }

    private func keepRight(_ message: MachMessage, _ servant: Servant) {
        guard let right = message.takeReplyRight() else { return servant.say("no right") }
        if message.expectsReply { servant.say("a message whose right was taken expects a reply") }
        servant.say(servant.outcome { () throws(PortError) in try message.reply(MachMessage()) })
        var copy = MachMessage(id: message.id)
        copy.setReplyRight(right)
        servant.keep(copy)
    }

    private func late(_ message: MachMessage, _ servant: Servant) {
        guard message.id == 2 else { return servant.keep(message) }
        for retained in servant.take(servant.retained) { try? retained.reply(MachMessage(id: 1)) }
        servant.reply(to: message, MachMessage(id: 2))
    }

    private func work(_ port: MachPort, _ message: MachMessage, _ servant: Servant) {
        servant.say("worker \(message.id) \(message.text)")
        let isLast = message.id == 99
        if isLast { port.invalidate() }
        let answer = isLast ? MachMessage(id: 104, text: "bye") : MachMessage(id: 100 + message.id, text: "done")
        try? servant.other?.send(answer, within: serviceTimeout)
    }

    private func converse(_ message: MachMessage, _ servant: Servant) {
        let answers = MachPort { _, answer in servant.say("\(answer.id)") }
        do throws(PortError) {
            try answers.schedule()
        } catch {
            servant.say(sentence(error))
        }
        servant.made.withLock { $0.append(answers) }
        var question = MachMessage(id: message.id + 1)
        question.setReplyRight(answers.makeSendOnceRight())
        servant.reply(to: message, question)
    }
}

extension Servant {
    /// The error's code as text; "fine" when there is none.
    func outcome(_ body: () throws(PortError) -> Void) -> String {
        do throws(PortError) {
            try body()
            return "fine"
        } catch {
            return "\(error.code)"
        }
    }
}

/// `count` bytes that differ from position to position.
package func pattern(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + period.count)
    while bytes.count < count { bytes += period }
    bytes.removeLast(bytes.count - count)
    return bytes
}

// Made once: in a debug build, making it anew for each message was most of what the stress tests did.
private let period = (0..<251).map { UInt8($0) }
