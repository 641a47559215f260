// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import MessagePort
import NamedPortServer
import RunLoopCore

/// The same with this package's own ports.
struct NativePeer {
    private let name: String

    init(_ name: String) { self.name = name }

    /// Replies to each message with its text in upper case.
    func serve() {
        do {
            let port = try LocalMessagePort(name: name) { _, message in
                if !message.expectsReply { say("got \(message.id) \(String(decoding: message.bytes, as: UTF8.self))") }
                return Array(String(decoding: message.bytes, as: UTF8.self).uppercased().utf8)
            }
            try port.schedule(on: .current)
            Thread.detachNewThread {
                while readLine() != nil {}
                exit(0)
            }
            say("ready")
            ThreadRunLoop.current.run()
        } catch {
            say("\(error)")
        }
    }

    func run() {
        do {
            let remote = try RemoteMessagePort(name: name)
            say("ready")
            while let words = nextWords() {
                guard words.count == 3, let id = Int32(words[1]) else { continue }
                let message = MachMessage(id: id, bytes: Array(words[2].utf8))
                if words[0] == "send" {
                    try remote.send(message)
                    say("0 -")
                } else {
                    let reply = try remote.request(message, replyLimit: .seconds(60))
                    say("0 \(String(decoding: reply.bytes, as: UTF8.self))")
                }
            }
        } catch {
            say("\(error)")
        }
    }
}
