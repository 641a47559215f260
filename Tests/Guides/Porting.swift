// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

func porting() throws {
    try nsMachPort()
    try cfMessagePort()
    try xpc()
    try dBus()
}

final class Listener: MachPortDelegate {
    func handleMachMessage(_ message: MachMessage, at port: MachPort) {
        print("message \(message.id): \(message.text)")
        ThreadRunLoop.current.stop()
    }
}

private func nsMachPort() throws {
    let listener = Listener()
    let port = MachPort()
    port.setDelegate(listener)
    try ThreadRunLoop.current.add(port, forMode: .default)

    let worker = try ResidentThread(name: "worker")
    let right = port.makeSendRight()
    try worker.perform { try right.send(MachMessage(id: 100, text: "checking in"), within: .seconds(10)) }
    ThreadRunLoop.current.run(for: .seconds(10))
    port.invalidate()
}

private func cfMessagePort() throws {
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

struct Crop: MessageContent {
    var path: String
    var width: UInt32

    init(path: String, width: UInt32) {
        self.path = path
        self.width = width
    }

    init(from reader: inout MessageReader) throws(PortError) {
        path = try reader.read()
        width = try reader.read()
    }

    func write(to writer: inout MessageWriter) {
        writer.write(path)
        writer.write(width)
    }
}

private func xpc() throws {
    let thread = try ResidentThread(name: "crop")
    let service = MachPort { _, message in
        do throws(PortError) {
            let crop: Crop = try message.content()
            try message.reply(content: "\(crop.path), now \(crop.width) wide")
        } catch {
            try? message.replyError(1, "\(error)")
        }
    }
    try PortNameServer.shared.register(service, name: "org.example.crop")
    try service.schedule(on: thread.loop)

    let connection = try PortNameServer.shared.lookUp("org.example.crop")
    let answer: String = try connection.request(Crop(path: "cat.png", width: 64))
    print(answer)
    service.invalidate()
}

private func dBus() throws {
    let listeners = LoopBound<[SendRight]>([])
    let weather = MachPort { _, message in
        // A process that sends a port is notified from now on.
        if let listener = message.replyPort { listeners.value.append(listener) }
    }
    try weather.schedule()

    let window = MachPort()
    let subscription = MachMessage(id: 1, replyPort: window.makeSendRight())
    try weather.makeSendRight().send(subscription, within: .seconds(1))
    ThreadRunLoop.current.run(for: .seconds(10), returnAfterSourceHandled: true)

    listeners.value.removeAll { $0.isDead }
    for listener in listeners.value where try !listener.trySend(MachMessage(id: 2, text: "rain")) {
        print("one has no room, and misses this")
    }
    if let forecast = try window.tryReceive() { print("the window shows \(forecast.text)") }
    weather.invalidate()
}
