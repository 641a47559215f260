// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
package import MessagePort
import PortSystem
import RunLoopCore
import Synchronization

extension Servant {
    /// Does what the message's id asks for: an ``Act``.
    ///
    /// - Returns: what the caller has to reply, if anything.
    package func answer(_ port: MachPort, _ message: MachMessage) -> [UInt8]? {
        switch message.id {
        case Act.reverse: reverse(message)
        case Act.process: return Array(String(sysProcessID()).utf8)
        case Act.note: say("note \(message.text)")
        case Act.exit: _exit(Int32(message.text) ?? 0)
        case Act.die: kill(sysProcessID(), SIGKILL)
        case Act.leave: return leave(port)
        case Act.drop: message.takeReplyRight()?.drop()
        case Act.keep: keepRight(message)
        case Act.answer: return Array(String(answerRetained()).utf8)
        case Act.callBack: return callBack(message)
        case Act.write: write(message)
        case Act.askOther: return askOther(message)
        case Act.make: makePort(for: message)
        case Act.handOn: if let right = message.rights.first { handOn(message, as: Act.process, to: right) }
        default: break
        }
        return nil
    }

    /// With a limit of its own: a large reply needs its time on a busy machine.
    private func reverse(_ message: MachMessage) {
        guard message.expectsReply else { return }
        reply(to: message, MachMessage(id: message.id, bytes: message.bytes.reversed()))
    }

    private func leave(_ port: MachPort) -> [UInt8] {
        port.invalidate()
        ThreadRunLoop.current.stop()
        return Array("gone".utf8)
    }

    /// The message's copy holds the right, if it is put back.
    private func keepRight(_ message: MachMessage) {
        guard let right = message.takeReplyRight() else { return }
        var copy = MachMessage(id: message.id)
        copy.setReplyRight(right)
        retained.withLock { $0.append(copy) }
        say("retained")
    }

    private func answerRetained() -> Int {
        let messages = take(retained)
        for message in messages {
            do throws(PortError) {
                try message.reply(MachMessage(id: message.id, text: "late"))
                say("answered")
            } catch {
                say(sentence(error))
            }
        }
        return messages.count
    }

    private func callBack(_ message: MachMessage) -> [UInt8] {
        do throws(PortError) {
            guard let port = message.replyPort else { return [] }
            let reply = try port.request(MachMessage(id: Act.reverse, bytes: message.bytes), mode: .default)
            return reply.bytes.reversed()
        } catch {
            return Array(sentence(error).utf8)
        }
    }

    private func write(_ message: MachMessage) {
        for descriptor in message.descriptors {
            _ = try? sysWriteAll(descriptor.rawValue, Array("written by \(sysProcessID())".utf8))
        }
    }

    private func askOther(_ message: MachMessage) -> [UInt8] {
        do throws(PortError) {
            guard let right = message.rights.first else { return [] }
            return try right.request(MachMessage(id: Act.process)).bytes
        } catch {
            return Array(sentence(error).utf8)
        }
    }

    private func makePort(for message: MachMessage) {
        let port = MachPort { _, message in
            try? message.reply(MachMessage(id: message.id, bytes: message.bytes.reversed()))
        }
        do throws(PortError) {
            try port.schedule()
            made.withLock { $0.append(port) }
            try message.reply(MachMessage(id: message.id, components: [.right(port.makeSendRight())]))
        } catch {
            say(sentence(error))
        }
    }

    /// Sends a request on, with its reply right and its parts.
    func handOn(_ message: MachMessage, as id: Int32, to right: SendRight) {
        guard let replyRight = message.takeReplyRight() else { return }
        let parts = message.components.filter { if case .right = $0 { false } else { true } }
        var onward = MachMessage(id: id, components: parts)
        onward.setReplyRight(replyRight)
        do throws(PortError) {
            try right.send(onward, within: serviceTimeout)
        } catch {
            say(sentence(error))
        }
    }
}
