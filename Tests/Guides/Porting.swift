// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

func porting() throws {
    let thread = try ResidentThread(name: "echo")
    let local = try LocalMessagePort(name: "org.example.echo") { _, message in message.bytes }
    try local.schedule(on: thread.loop)
    let remote = try RemoteMessagePort.shared(name: "org.example.echo")
    cf(remote)
    local.invalidate()
    cf(remote)
}

private func cf(_ remote: RemoteMessagePort) {
    var reply: [UInt8] = []
    var status: Int32 = 0  // kCFMessagePortSuccess
    do throws(PortError) {
        reply = try remote.request(
            MachMessage(id: 1, text: "hello"), sendLimit: .sendLimit(cfSeconds: 1),
            replyLimit: .replyLimit(cfSeconds: 5)
        ).bytes
    } catch {
        status = error.cfStatus
    }
    print("the reply is \(reply.count) bytes, the status \(status)")
}
