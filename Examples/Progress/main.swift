// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Progress reports, streamed one way from a thread that works to one that shows them. The sender or the port chooses
// what happens when they come faster than they are shown.

import Foundation
import MessagePort

let mainLoop = ThreadRunLoop.main

func report(_ percent: Int) -> MachMessage {
    MachMessage(content: percent)
}

/// Reports why no more reports come, and releases the thread that waits for them.
func giveUp(_ error: any Error) {
    print("  the sender stops: \(error)")
    mainLoop.stop()
}

/// Shows the reports of a port until the last one has come. Returns how many there were.
func showReports(of port: MachPort) throws -> Int {
    let count = LoopBound(0)
    port.setHandler { _, message in
        do throws(PortError) {
            let percent: Int = try message.content()
            count.value += 1
            if percent % 25 == 0 { print("  \(percent) %") }
            if percent == 100 { mainLoop.stop() }
        } catch {
            print("  no report: \(error)")
        }
    }
    try port.schedule()
    mainLoop.run()
    port.invalidate()
    return count.value
}

/// The sender waits for room: no report is lost, and the queue stays short.
func waitForRoom() throws {
    print("a sender that waits for room")
    let port = MachPort(queueLimit: 4)
    Thread.detachNewThread { [right = port.makeSendRight()] in
        do {
            var hasWaited = false
            for percent in 1...100 {
                if try right.trySend(report(percent)) { continue }
                if !hasWaited { mainLoop.stop() }  // the queue is full: the other thread begins to read
                hasWaited = true
                try right.send(report(percent), within: .seconds(10))
            }
        } catch {
            giveUp(error)
        }
    }
    mainLoop.run()
    print("  the queue is full with \(port.queueCount) reports")
    let count = try showReports(of: port)
    print("  \(count) reports came")
}

/// The sender is a run loop that must not block: it goes on when it is notified that there is room.
func askForRoom() throws {
    print("a sender that is notified when there is room")
    let port = MachPort(queueLimit: 4)
    let sender = try ResidentThread(name: "sender")
    try sender.perform { [right = port.makeSendRight()] in
        Sender(right: right).sendAll()
    }
    let count = try showReports(of: port)
    print("  \(count) reports came")
    sender.stop()
    sender.join()
}

struct Sender: Sendable {
    let right: SendRight
    private let percent = LoopBound(1)

    init(right: SendRight) {
        self.right = right
    }

    /// Sends as long as there is room, and asks to be called again otherwise.
    func sendAll() {
        do throws(PortError) {
            while percent.value <= 100 {
                guard try right.trySend(report(percent.value)) else {
                    try right.notifyWhenSendPossible { _ in sendAll() }
                    return
                }
                percent.value += 1
            }
        } catch {
            giveUp(error)
        }
    }
}

/// Only the newest report matters: the sender never waits, and the queue has one report at most.
func keepTheLatest() throws {
    print("a port that keeps the latest report only")
    let port = MachPort(queuePolicy: .keepLatest)
    for percent in 1...100 {
        try port.makeSendRight().send(report(percent), within: .zero)
    }
    let dropped = port.droppedMessageCount
    let count = try showReports(of: port)
    print("  \(count) report came, \(dropped) were replaced by newer ones")
}

do {
    try waitForRoom()
    try askForRoom()
    try keepTheLatest()
} catch {
    FileHandle.standardError.write(Data("progress: \(error)\n".utf8))
    exit(1)
}
