// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort

func checkInLauncher(bytes: [UInt8]) throws {
    let worker = try PortWorker.launchProcess(WorkerProgram("/usr/libexec/indexer", ["--quiet"]))
    let right = try worker.checkIn(within: .seconds(5))
    let answer = try right.request(MachMessage(id: 101, bytes: bytes))
    try worker.shutDown(asking: MachMessage(id: 103))
    print(answer)
}

func checkInWorker(index: @escaping @Sendable ([UInt8]) -> [UInt8]) throws {
    guard let parent = try SendRight.bootstrap() else { fatalError("Not launched as a worker.") }
    let loop = ThreadRunLoop.current
    let port = MachPort { port, message in
        if message.id == 103 { return loop.stop() }
        try? message.reply(MachMessage(bytes: index(message.bytes)))
    }
    try port.schedule()
    try parent.notifyWhenDead { _ in loop.stop() }  // there is no launcher left to work for
    try parent.checkIn(port)
    loop.run()
    port.invalidate()
}
