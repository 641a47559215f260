// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort

/// Draws thirty pictures, and sends each to both viewers.
func produce(writingTo directory: String) throws {
    let workers = try (1...2).map { number in
        try PortWorker.launchProcess(WorkerProgram("/proc/self/exe", ["--viewer", "\(number)", directory]))
    }
    let viewers = try workers.map { try $0.checkIn(within: .seconds(10)) }
    let pool = MemoryPool()
    for number in 1...30 {
        var loan = try pool.loan(Picture.byteCount)
        loan.withBytes { Picture.draw(number, in: &$0) }
        let picture = loan.freeze()
        for viewer in viewers {
            try viewer.send(MachMessage(id: Int32(number), memory: picture), within: .seconds(10))
        }
    }
    for viewer in viewers {
        let report = try viewer.request(
            MachMessage(id: leave), sendLimit: .seconds(10), replyLimit: .seconds(10))
        print(report.text)
    }
    for worker in workers { _ = worker.waitForExit(within: .seconds(10)) }
    print("\(pool.lentByteCount) bytes of the pool are lent now")
}
