// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Act 3: the check-in between two processes, by the library. The program launches itself as the worker, which inherits
// a right to a port of the main process: there is no name to agree on.

import Foundation
import NamedPortServer

func actThree(_ files: [InputFile], workerDies: Bool) throws {
    Transcript.line("act 3: a worker process that inherited a right to the main process's port")
    Transcript.note("main", "launches a worker with a right to its port")
    let arguments = (workerDies ? ["--worker-dies"] : []) + ["--worker"]
    let worker = try PortWorker.launchProcess(WorkerProgram("/proc/self/exe", arguments))
    do {
        let port = try worker.checkIn(within: timeout)
        Transcript.note("main", "got message \(MessageID.checkIn), keeps the worker's port")
        let table = try count(files) { (request) throws(PortError) in
            try port.request(request, sendLimit: timeout, replyLimit: timeout)
        }
        Transcript.note("main", "sends message \(MessageID.leave)")
        let exit = try worker.shutDown(asking: MachMessage(id: MessageID.leave), within: timeout)
        guard exit == .exited(status: 0) else { throw Failure("the worker (\(worker.identity)) \(exit)") }
        Transcript.note("main", "the worker process has \(exit)")
        table.print()
    } catch let error as PortError where [.peerDied, .deadName, .workerExited].contains(error.code) {
        // The communication failed because the worker died: that is the error to report.
        guard let exit = worker.waitForExit(within: timeout) else { throw error }
        throw Failure("the worker (\(worker.identity)) \(exit)")
    }
}

/// The worker of act 3, in a process of its own.
func workerProcess(dies: Bool) throws {
    guard let mainPort = try SendRight.bootstrap() else { throw Failure("this process was not launched as a worker") }
    let loop = ThreadRunLoop.current
    try mainPort.notifyWhenDead { _ in loop.stop() }  // no process is left to work for
    let myPort = MachPort { port, message in
        switch message.id {
        case MessageID.count:
            if dies { kill(getpid(), SIGKILL) }
            Transcript.note("worker", "got message \(message.id), replies")
            try? message.reply(
                MachMessage(id: MessageID.counted, text: Counts(of: message.bytes).text), within: timeout)
        default:
            Transcript.note("worker", "got message \(message.id), leaves")
            port.invalidate()
            loop.stop()
        }
    }
    try myPort.schedule()
    Transcript.note("worker", "checks in with message \(MessageID.checkIn) and its own port")
    try mainPort.checkIn(myPort, within: timeout)
    loop.run()
    if myPort.isValid { throw Failure("the main side is gone") }
}
