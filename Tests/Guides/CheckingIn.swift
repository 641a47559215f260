// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort

func checkingIn() throws {
    try thread()
    try process()
    try neverThere()
    try pool()
}

/// What the program does when it is launched as a worker.
func checkingInWorker() throws {
    guard let launcher = try SendRight.bootstrap() else { return }
    let port = MachPort { port, message in
        switch message.id {
        case 1: try? message.reply(MachMessage(text: message.text.uppercased()))
        default:
            port.invalidate()
            ThreadRunLoop.main.stop()
        }
    }
    try port.schedule()
    try launcher.checkIn(port)
    ThreadRunLoop.main.run()
}

private func thread() throws {
    let worker = try PortWorker.launchThread(name: "adder") { launcher in
        let port = MachPort { _, message in
            let numbers = (try? message.content(as: [Int].self)) ?? []
            try? message.reply(content: numbers.reduce(0, +))
        }
        try port.schedule()
        try launcher.checkIn(port)
    }

    let right = try worker.checkIn(within: .seconds(10))
    let sum: Int = try right.request([1, 2, 3])
    print("the thread says \(sum)")
    print("the thread \(try worker.shutDown())")
}

private func process() throws {
    let program = WorkerProgram("/proc/self/exe", ["worker"])
    let worker = try PortWorker.launchProcess(program)
    let right = try worker.checkIn(within: .seconds(10))
    let reply = try right.request(MachMessage(id: 1, text: "hello"))
    print("the process says \(reply.text)")
    print("the process \(try worker.shutDown(asking: MachMessage(id: 2)))")
}

private func neverThere() throws {
    let worker = try PortWorker.launchProcess(WorkerProgram("/bin/sh", ["-c", "exit 3"]))
    do {
        _ = try worker.checkIn(within: .seconds(10))
    } catch {
        print("\(error.code): it \(error.workerExit ?? .unknown)")
    }
}

private func pool() throws {
    let pool = try PortWorkerPool(count: 3) { number in
        try PortWorker.launchThread(name: "number \(number)") { launcher in
            let port = MachPort { _, message in try? message.reply(content: number * 10) }
            try port.schedule()
            try launcher.checkIn(port)
        }
    }
    for right in try pool.checkIn(within: .seconds(10)) {
        let answer: Int = try right.request(0)
        print(answer)
    }
    try pool.shutDown()
}
