// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// What `serve` does with a message, by its id:
//
//   1 reverse     replies the bytes in reverse order       9 answer     replies to all kept requests; "answered", or the
//   2 process     replies its process id                                error, for each; replies how many
//   3 silence     its handler returns nil                  10 call back requests 1 of the reply port, in the default
//   4 note        "note TEXT"; no reply is expected                     mode; replies that reply reversed, or the error
//   5 die         kills itself before it replies           11 write     writes "written by PROCESS" to the descriptor
//   6 leave       invalidates its port, stops its loop,    12 ask other requests 2 of the right inside, replies that
//                 replies "gone"                           13 make      replies a right to a new port, which reverses
//   7 drop        lets the reply right go unused           14 hand on   hands the request on to the right inside, which
//   8 keep        keeps the reply right; "kept"                         replies instead

import Glibc
import NamedPortServer
import PortSystem
import RunLoopCore
import Synchronization

/// A port that answers, and what it remembers.
final class Server: Sendable {
    private let kept = Mutex<[MachMessage]>([])
    private let made = Mutex<[MachPort]>([])

    func answer(_ port: MachPort, _ message: MachMessage) -> [UInt8]? {
        switch message.id {
        case 1: reverse(message)
        case 2: return Array(String(sysProcessID()).utf8)
        case 4: say("note \(message.text)")
        case 5: kill(sysProcessID(), SIGKILL)
        case 6: return leave(port)
        case 7: message.takeReplyRight()?.drop()
        case 8: keep(message)
        case 9: return Array(String(answerKept()).utf8)
        case 10: return callBack(message)
        case 11: write(message)
        case 12: return askOther(message)
        case 13: makePort(for: message)
        case 14: handOn(message)
        default: break
        }
        return nil
    }

    /// With a limit of its own: a large reply takes its time on a busy machine.
    private func reverse(_ message: MachMessage) {
        guard message.expectsReply else { return }
        do throws(PortError) {
            let reply = MachMessage(id: message.id, bytes: message.bytes.reversed())
            try message.reply(reply, within: .seconds(60))
        } catch {
            say(sentence(error))
        }
    }

    /// Ends the ports that it made.
    func end() {
        let ports = made.withLock { made in
            defer { made = [] }
            return made
        }
        for port in ports { port.invalidate() }
    }

    private func leave(_ port: MachPort) -> [UInt8] {
        port.invalidate()
        ThreadRunLoop.current.stop()
        return Array("gone".utf8)
    }

    /// The message's copy holds the right, if it is put back.
    private func keep(_ message: MachMessage) {
        guard let right = message.takeReplyRight() else { return }
        var copy = MachMessage(id: message.id)
        copy.setReplyRight(right)
        kept.withLock { $0.append(copy) }
        say("kept")
    }

    private func answerKept() -> Int {
        let messages = kept.withLock { kept in
            defer { kept = [] }
            return kept
        }
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
            let reply = try port.request(MachMessage(id: 1, bytes: message.bytes), mode: .default)
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
            return try right.request(MachMessage(id: 2)).bytes
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

    private func handOn(_ message: MachMessage) {
        guard let other = message.rights.first, let right = message.takeReplyRight() else { return }
        var request = MachMessage(id: 2)
        request.setReplyRight(right)
        do throws(PortError) {
            try other.send(request, within: .seconds(30))
        } catch {
            say(sentence(error))
        }
    }
}

/// Answers messages to a named port until the input ends.
func serve(_ directory: String, _ name: String, queueLimit: Int) throws(PortError) {
    let server = Server()
    let port = try LocalMessagePort(
        name: name, nameServer: PortNameServer(directory: directory), queueLimit: queueLimit,
        handler: { server.answer($0.port, $1) })
    try port.schedule()
    say("ready")
    runUntilInputEnds()
    port.invalidate()
    server.end()
}
