// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import NamedPortServer
import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("Clients killed at any point", .leakCheck(warmingUp: makeSpareDescriptor))
struct KilledClientTests {
    @Test(
        "a client killed among its messages: each came once and in order, others are served, nothing stays, 100 times",
        .seeded, arguments: ["never", "always"])
    func killedAnywhere(rings: String) async throws {
        try await withFixture(leaving: .anything) { fixture in
            let handler = Handler()
            let local = try LocalMessagePort(name: "name", nameServer: fixture.names) { handler.handle($0.port, $1) }
            try withLoopThread { loop in
                try local.schedule(on: loop)
                try withReadyPeer(["pace", fixture.directory, "name"], at: fixture, rings: rings) { other in
                    handler.ignore(other.processID)
                    var generator = Seed.generator()
                    var before: Set<String>?
                    for round in 0..<100 {
                        // In the first round the client lives until it has asked for room: the port makes memory for that.
                        let plan = Plan(rings, &generator, atLeast: round == 0 ? 20 : 1)
                        try Self.kill(by: plan, handler, at: fixture, beside: other, "round \(round), \(plan)")
                        expectSoon("round \(round): connections") { local.port.localPort.connectionCount == 0 }
                        #expect(handler.faults == [], "round \(round), \(plan)")
                        // The first round makes the pools of the loop's thread.
                        guard let before else {
                            // The loop has closed all that it had to close when it reaches this block.
                            let done = Gate("the loop's next block")
                            loop.perform { done.open() }
                            done.wait()
                            waitForIOThread()  // it may still hold a connection that has ended
                            before = openDescriptors()
                            continue
                        }
                        expectSoon("round \(round): descriptors") { openDescriptors() == before }
                    }
                }
                local.invalidate()
            }
        }
    }

    private struct Plan {
        /// When the client uses rings.
        let rings: String
        let messages: Int
        let iterations: Int
        let keepsReply: Bool

        init(_ rings: String, _ generator: inout SplitMix64, atLeast least: Int) {
            self.rings = rings
            keepsReply = Bool.random(using: &generator)
            // Every second message is a request, and the first is one.
            messages = Int.random(in: least...40, using: &generator) | (keepsReply ? 1 : 0)
            iterations = Int.random(in: 0...2000, using: &generator)
        }
    }

    private static func kill(
        by plan: Plan, _ handler: Handler, at fixture: NameFixture, beside other: ChildProcess, _ comment: Comment
    ) throws {
        handler.open(keepingReplyFrom: plan.keepsReply ? plan.messages : .max)
        let client = try ChildProcess(
            builtProduct("port-test-peer"), ["stream", fixture.directory, "name", "1000000"],
            environment: ["PORT_RING": plan.rings])
        handler.seen(from: client.processID).waitUntilCount(plan.messages)
        // The other client's request is under way while this one dies.
        try other.write("\(plan.iterations)\n")
        spin(plan.iterations)
        client.kill()
        try other.expect("reply \(plan.iterations)")
        #expect(try client.waitForExit().end == .signalled(SIGKILL), comment)
        let retained = handler.takeRetained()
        if plan.keepsReply {
            let request = try #require(retained.first, comment)
            expectSoon(comment) { request.isCancelled }
            #expect(failure { try request.reply(MachMessage(id: 1)) }?.code == .deadName, comment)
        }
        #expect(retained.count == (plan.keepsReply ? 1 : 0), comment)
    }
}

/// A server's handler that checks each sender's numbers and may store a reply right.
private final class Handler: Sendable {
    fileprivate struct State {
        var next: [Int32: Int] = [:]
        var counters: [Int32: Counter] = [:]
        var ignored: Int32 = 0
        var faults: [String] = []
        var keepsFrom = Int.max
        var retained: [MachMessage] = []
    }

    private let state = Mutex(State())

    /// From this number on, the handler withholds the replies.
    func open(keepingReplyFrom number: Int) {
        state.withLock { $0.keepsFrom = number }
    }

    /// Does not check the order of this sender's numbers.
    func ignore(_ sender: Int32) {
        state.withLock { $0.ignored = sender }
    }

    /// Counts the messages of a sender.
    func seen(from sender: Int32) -> Counter {
        state.withLock { $0.seen(sender) }
    }

    /// The messages that came out of order, twice, or never.
    var faults: [String] { state.withLock { $0.faults } }

    func takeRetained() -> [MachMessage] {
        state.withLock { state in
            defer { state.retained = [] }
            return state.retained
        }
    }

    @Sendable func handle(_ port: MachPort, _ message: MachMessage) -> [UInt8]? {
        let (counter, keeps) = state.withLock { state in state.note(message) }
        if keeps, let right = message.takeReplyRight() {
            var copy = MachMessage(id: message.id)
            copy.setReplyRight(right)
            state.withLock { $0.retained.append(copy) }
        }
        counter.increment()
        return message.bytes
    }
}

extension Handler.State {
    fileprivate mutating func seen(_ sender: Int32) -> Counter {
        if let counter = counters[sender] { return counter }
        let counter = Counter("the messages of \(sender)")
        counters[sender] = counter
        return counter
    }

    /// - Returns: the counter for the message, and whether to store its reply right.
    fileprivate mutating func note(_ message: MachMessage) -> (Counter, Bool) {
        let sender = message.sender.processID
        if sender == ignored { return (seen(sender), false) }
        let number = next[sender, default: 0]
        if message.text != String(number) { faults.append("\(sender): \(message.text) instead of \(number)") }
        next[sender] = number + 1
        let keeps = message.expectsReply && number + 1 >= keepsFrom
        return (seen(sender), keeps)
    }
}
