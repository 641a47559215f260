// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort

func bulkData() throws {
    let port = MachPort { _, message in
        guard let frame = message.memory.first else { return }
        let sum = frame.withBytes { bytes in
            (0..<bytes.byteCount).reduce(0) { $0 + Int(unsafe bytes.unsafeLoad(fromByteOffset: $1, as: UInt8.self)) }
        }
        print("\(frame.count) bytes, \(frame.grade), whose sum is \(sum)")
        try? message.reply(MachMessage())
    }
    try port.schedule()

    let pool = MemoryPool()
    var loan = try pool.loan(3_000_000)
    loan.withBytes { bytes in
        for index in 0..<bytes.byteCount { bytes.storeBytes(of: 1, toByteOffset: index, as: UInt8.self) }
    }
    let right = port.makeSendRight()
    _ = try right.request(MachMessage(id: 7, memory: loan.freeze()), mode: .default)

    var table = try LoanedMemory(sealable: 4096)
    table.withBytes { bytes in bytes.storeBytes(of: 42, toByteOffset: 0, as: UInt8.self) }
    _ = try right.request(MachMessage(memory: table.freeze()), mode: .default)
    _ = try right.request(MachMessage(memory: MessageMemory([1, 2, 3])), mode: .default)
    port.invalidate()
}
