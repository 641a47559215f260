// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import MessagePort

func portsAndRights() throws {
    try queue()
    try policy()
    try introduction()
    try later()
    try lettingGo()
    try descriptor()
    try ends()
}

private func queue() throws {
    let port = MachPort(queueLimit: 2)
    let right = port.makeSendRight()
    for text in ["first", "second", "third"] {
        let isSent = try right.trySend(MachMessage(id: 1, text: text))
        print("\(text): \(isSent ? "sent" : "no room")")
    }
    while let message = try port.tryReceive() { print("received \(message.text)") }
}

private func policy() throws {
    let gauge = MachPort(queueLimit: 1, queuePolicy: .keepLatest)
    let right = gauge.makeSendRight()
    for degrees in [19, 20, 21] { try right.send(degrees, within: .zero) }
    if let message = try gauge.tryReceive() {
        print("\(try message.content(as: Int.self)) degrees, \(gauge.droppedMessageCount) dropped")
    }
}

private func introduction() throws {
    let door = MachPort()
    let visitor = MachPort()
    let knock = MachMessage(id: 1, text: "Ada", replyPort: visitor.makeSendRight())
    try door.makeSendRight().send(knock, within: .seconds(1))

    if let guest = try door.receive(within: .seconds(1)), let answer = guest.replyPort {
        try answer.send(MachMessage(id: 2, text: "come in, \(guest.text)"), within: .seconds(1))
    }
    if let welcome = try visitor.receive(within: .seconds(1)) { print(welcome.text) }
}

private func later() throws {
    let kitchen = try ResidentThread(name: "kitchen")
    let waiter = MachPort { _, order in
        ThreadRunLoop.current.perform {
            try? order.reply(MachMessage(id: 2, text: "one \(order.text), hot"))
        }
    }
    try waiter.schedule(on: kitchen.loop)

    let meal = try waiter.makeSendRight().request(MachMessage(id: 1, text: "soup"))
    print(meal.text)
    waiter.invalidate()
}

private func lettingGo() throws {
    let thread = try ResidentThread(name: "silent")
    let silent = MachPort { _, _ in }
    try silent.schedule(on: thread.loop)

    do {
        _ = try silent.makeSendRight().request(MachMessage(id: 1, text: "hello?"))
    } catch {
        print(error)
    }
    silent.invalidate()
}

private func descriptor() throws {
    let pipe = Pipe()
    let port = MachPort()
    let reading = try SharedDescriptor(duplicating: pipe.fileHandleForReading.fileDescriptor)
    try port.makeSendRight().send(
        MachMessage(id: 1, components: [.descriptor(reading)]), within: .seconds(1))

    try pipe.fileHandleForWriting.write(contentsOf: Data("through the pipe".utf8))
    try pipe.fileHandleForWriting.close()
    if let received = try port.receive(within: .seconds(1))?.descriptors.first {
        let file = FileHandle(fileDescriptor: received.rawValue, closeOnDealloc: false)
        print(String(decoding: file.availableData, as: UTF8.self))
    }
}

private func ends() throws {
    let port = MachPort()
    let right = port.makeSendRight()
    try right.notifyWhenDead { _ in print("notice: the port is gone") }

    port.invalidate()
    ThreadRunLoop.current.run(for: .zero)
    print("a dead name: \(right.isDead)")
}
