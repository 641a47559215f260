// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort

func firstPorts() throws {
    let adder = MachPort { _, message in
        do {
            let numbers = try message.content(as: [Int].self)
            try message.reply(content: numbers.reduce(0, +))
        } catch {
            try? message.replyError(1, "that is no list of numbers")
        }
    }

    let thread = try ResidentThread(name: "adder")
    try adder.schedule(on: thread.loop)
    let right = adder.makeSendRight()

    let sum: Int = try right.request([1, 2, 3])
    print("1 + 2 + 3 = \(sum)")

    do {
        let sum: Int = try right.request("one, two, three")
        print(sum)
    } catch {
        print("\(error.code) \(error.remoteCode ?? 0): \(error.remoteText ?? "")")
    }

    adder.invalidate()
    do {
        let sum: Int = try right.request([4, 5])
        print(sum)
    } catch {
        print(error)
    }

    thread.stop()
    thread.join()
}
