// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort

/// The side that reports: a thread of this process, or another process. It sends a hundred reports when it gets an
/// order, in the way that the order says.
struct Worker: Sendable {
    /// What it does while the port of the reports has no room.
    enum Way: Int32 {
        case waiting = 1
        case notified
        case neverWaiting
    }

    /// The message that ends it, beside the orders.
    static let leave: Int32 = 0
    /// The message that says that the worker waits for room for the first time.
    static let isWaiting: Int32 = 1
    /// The message that says why it sends no more reports.
    static let hasFailed: Int32 = 2

    /// What a report has besides its number: a picture, say.
    private let picture: [UInt8]
    private let parent: SendRight

    init(reportSize: Int, _ parent: SendRight) {
        picture = [UInt8](repeating: 0, count: reportSize)
        self.parent = parent
    }

    /// Checks in with a port to which the orders come.
    func start() throws {
        let port = MachPort { port, message in
            if message.id != Self.leave { return obey(message) }
            port.invalidate()
            ThreadRunLoop.current.stop()
        }
        try port.schedule()
        try parent.checkIn(port)
    }

    private func obey(_ message: MachMessage) {
        guard let way = Way(rawValue: message.id), let right = message.rights.first else { return }
        do throws(PortError) {
            switch way {
            case .waiting: try sendWaiting(to: right)
            case .notified: sendWhilePossible(from: 1, to: right)
            case .neverWaiting:
                for percent in 1..<100 as Range<Int32> { try right.send(report(percent), within: .zero) }
                // Sent is not yet there: from another process, a message takes a moment.
                try right.send(report(100), confirming: .queued)
                try message.reply(MachMessage())
            }
        } catch {
            giveUp(error)
        }
    }

    private func sendWaiting(to right: SendRight) throws(PortError) {
        var hasWaited = false
        for percent in 1...100 as ClosedRange<Int32> {
            if try right.trySend(report(percent)) { continue }
            if !hasWaited { try parent.send(MachMessage(id: Self.isWaiting), within: .seconds(10)) }
            hasWaited = true
            try right.send(report(percent), within: .seconds(10))
        }
    }

    /// Sends as long as there is room, and asks to be called again otherwise.
    private func sendWhilePossible(from first: Int32, to right: SendRight) {
        var percent = first
        do throws(PortError) {
            while percent <= 100 {
                guard try right.trySend(report(percent)) else {
                    try right.notifyWhenSendPossible { [percent] _ in sendWhilePossible(from: percent, to: right) }
                    return
                }
                percent += 1
            }
        } catch {
            giveUp(error)
        }
    }

    private func report(_ percent: Int32) -> MachMessage {
        MachMessage(id: percent, components: [.bytes(picture)])
    }

    /// Says why no more reports come.
    private func giveUp(_ error: PortError) {
        do throws(PortError) {
            try parent.send(MachMessage(id: Self.hasFailed, text: "\(error)"), within: .seconds(10))
        } catch let other {
            print("  the worker stops: \(error) And nobody learns it: \(other)")
        }
    }
}
