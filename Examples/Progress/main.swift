// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Progress reports, streamed one way from a worker to a thread that shows them. The sender or the port chooses what
// happens when they come faster than they are shown. The worker is a thread first, and then another process, whose
// reports are large: nothing else changes.

import Foundation
import MessagePort

let mainLoop = ThreadRunLoop.main

/// Shows the reports of a port until the last one has come. Returns how many there were.
func showReports(of port: MachPort) throws -> Int {
    let count = LoopBound(0)
    port.setHandler { _, report in
        count.value += 1
        if report.id % 25 == 0 { print("  \(report.id) %") }
        if report.id == 100 { mainLoop.stop() }
    }
    try port.schedule()
    mainLoop.run()
    port.invalidate()
    return count.value
}

/// The sender waits for room: no report is lost, and the queue stays short.
func waitForRoom(_ worker: SendRight) throws {
    print("a sender that waits for room")
    let port = MachPort(queueLimit: 4)
    try worker.send(order(.waiting, for: port), within: .seconds(10))
    mainLoop.run()  // until the worker says that it waits
    print("  the queue is full with \(port.queueCount) reports")
    let count = try showReports(of: port)
    print("  \(count) reports came")
}

/// The sender is a run loop that must not block: it goes on when it is notified that there is room.
func askForRoom(_ worker: SendRight) throws {
    print("a sender that is notified when there is room")
    let port = MachPort(queueLimit: 4)
    try worker.send(order(.notified, for: port), within: .seconds(10))
    let count = try showReports(of: port)
    print("  \(count) reports came")
}

/// Only the newest report matters: the sender never waits, and the queue has one report at most.
func keepTheLatest(_ worker: SendRight) throws {
    print("a port that keeps the latest report only")
    let port = MachPort(queuePolicy: .keepLatest)
    _ = try worker.request(order(.neverWaiting, for: port))  // the reply comes when all are sent
    let count = try showReports(of: port)
    print("  \(count) report came, \(port.droppedMessageCount) were replaced by newer ones")
}

func order(_ way: Worker.Way, for port: MachPort) -> MachMessage {
    MachMessage(id: way.rawValue, components: [.right(port.makeSendRight())])
}

/// Has a worker send its reports in each way.
func show(_ worker: PortWorker) throws {
    try worker.port.schedule()
    let right = try worker.checkIn(within: .seconds(10))
    try waitForRoom(right)
    try askForRoom(right)
    try keepTheLatest(right)
    try worker.shutDown(asking: MachMessage(id: Worker.leave))
}

/// Shows why no more reports come, and releases the thread that waits for them.
@Sendable func showMessage(_: MachPort, _ message: MachMessage) {
    if message.id != Worker.isWaiting { print("  the worker stops: \(message.text)") }
    mainLoop.stop()
}

do {
    if let parent = try SendRight.bootstrap() {
        try parent.notifyWhenDead { _ in mainLoop.stop() }
        try Worker(reportSize: 200_000, parent).start()
        mainLoop.run()
    } else {
        print("THE WORKER IS A THREAD")
        try show(.launchThread(handler: showMessage) { try Worker(reportSize: 0, $0).start() })
        print("THE WORKER IS A PROCESS, ITS REPORTS HAVE 200,000 BYTES")
        try show(.launchProcess(WorkerProgram("/proc/self/exe"), handler: showMessage))
    }
} catch {
    FileHandle.standardError.write(Data("progress: \(error)\n".utf8))
    exit(1)
}
