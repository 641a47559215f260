// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort

func requestsAndErrors() throws {
    let thread = try ResidentThread(name: "square roots")
    let port = MachPort { _, message in
        guard let number = try? message.content(as: Double.self) else {
            try? message.replyError(1, "send one number")
            return
        }
        guard number >= 0 else {
            try? message.replyError(2, "\(number) has no square root here")
            return
        }
        try? message.reply(content: number.squareRoot())
    }
    try port.schedule(on: thread.loop)
    let right = port.makeSendRight()

    try asking(right)
    try limits()
    legs(right)
    port.invalidate()
    legs(right)
    typed(right)
}

private func asking(_ right: SendRight) throws {
    let root: Double = try right.request(2.25, sendLimit: .seconds(1), replyLimit: .seconds(5))
    print("the root of 2.25 is \(root)")

    do {
        let root: Double = try right.request(-1.0)
        print(root)
    } catch {
        switch error.code {
        case .remoteError: print("refused, \(error.remoteCode ?? 0): \(error.remoteText ?? "")")
        default: throw error
        }
    }
}

private func limits() throws {
    let nobody = MachPort(queueLimit: 1)
    let right = nobody.makeSendRight()
    do {
        _ = try right.request(MachMessage(id: 1), replyLimit: .milliseconds(10))
    } catch {
        print(error)
    }
    do {
        try right.send(MachMessage(id: 2), within: .milliseconds(10))
    } catch {
        print(error)
    }
}

private func legs(_ right: SendRight) {
    do throws(PortError) {
        let root: Double = try right.request(16.0)
        print(root)
    } catch {
        switch error.delivery {
        case .notSent, .unread: print("ask again: nobody has read it")
        case .read, .unknown: print("ask again only if asking twice does no harm")
        }
    }
}

private func typed(_ right: SendRight) {
    do throws(PortError) {
        try right.send(1.0, within: .zero)
    } catch {
        print("\(error.code), from the kernel: \(error.systemError != nil)")
    }
}
