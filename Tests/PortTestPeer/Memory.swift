// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import NamedPortServer
import PortSystem
import RunLoopCore
import Synchronization

/// Memory of as many bytes as the number says, each of them the number's lowest byte: every third is sealed.
private func memory(_ number: Int32, of pool: MemoryPool) throws(PortError) -> MessageMemory {
    let count = [1, 5000, 20_000][Int(number) / 3 % 3]
    var loan = number % 3 == 0 ? try LoanedMemory(sealable: count) : try pool.loan(count)
    loan.withBytes { bytes in
        for index in 0..<count {
            bytes.storeBytes(of: UInt8(truncatingIfNeeded: number), toByteOffset: index, as: UInt8.self)
        }
    }
    return loan.freeze()
}

/// Retains the memory of the last messages, more or fewer of them as their ids say, and replies memory of its own.
func borrow(_ directory: String, _ name: String) throws(PortError) {
    let pool = MemoryPool()
    let retained = Mutex<[MessageMemory]>([])
    let port = MachPort { _, message in
        let old = retained.withLock { list in
            list += message.memory
            defer { list = list.suffix(Int(message.id % 8)) }
            return list
        }
        withExtendedLifetime(old) {}  // released without the lock
        if !message.expectsReply { return }
        do throws(PortError) {
            try message.reply(MachMessage(id: message.id, memory: memory(message.id, of: pool)), within: serviceTimeout)
        } catch {
            giveUp("cannot reply: \(error)")
        }
    }
    let names = try nameServer(in: directory)
    try names.register(port, name: name)
    try port.schedule()
    say("ready")
    runUntilInputEnds()
    port.invalidate()
}

/// Sends memory, numbered from 1, until the port ends.
func lend(_ directory: String, _ name: String) throws(PortError) {
    let (pool, right) = (MemoryPool(), try nameServer(in: directory).lookUp(name))
    var number: Int32 = 0
    while true {
        number &+= 1
        try right.send(MachMessage(id: number, memory: memory(number, of: pool)), within: serviceTimeout)
    }
}
