// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import NamedPortServer

/// A worker process: it checks in with its launcher, and squares numbers until a message makes it leave.
func workerMain() throws {
    guard let parent = try SendRight.bootstrap() else {
        FileHandle.standardError.write(Data("pool: this process was not launched as a worker\n".utf8))
        exit(EX_USAGE)
    }
    let loop = ThreadRunLoop.current
    let port = MachPort { _, message in
        if message.id == WorkerMessage.leave { return loop.stop() }
        do throws(PortError) {
            let job: [Int] = try message.content()
            try message.reply(content: square(job[0], triesBefore: job[1]))
        } catch {
            try? message.replyError(1, "\(error)")
        }
    }
    try port.schedule()
    try parent.notifyWhenDead { _ in loop.stop() }  // no process is left to work for
    try parent.checkIn(port)
    loop.run()
    port.invalidate()
}

/// The job. Four kills the first worker that tries it, six kills each.
private func square(_ number: Int, triesBefore: Int) -> Int {
    if number == 6 || number == 4 && triesBefore == 0 { kill(getpid(), SIGKILL) }
    return number * number
}
