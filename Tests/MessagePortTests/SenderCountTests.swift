// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import Testing

@Suite("the count of a port's senders") struct SenderCountTests {
    /// A port as its shell uses it.
    private final class Bench {
        var count = SenderCount()
        var pipes = PresencePipes<String>()
        let hasAddress: Bool

        init(hasAddress: Bool = true, counts: Bool = true) {
            self.hasAddress = hasAddress
            if counts { pipes.beginCounting() }
        }

        func verdict() -> String {
            switch count.verdict(&pipes, hasAddress: hasAddress, isListening: hasAddress) {
            case .wait: "wait"
            case .release(let end): "release \(end)"
            case .accept: "accept"
            case .notify: "notify"
            }
        }

        func open(_ end: String, _ key: UInt64) -> String { pipes.open(end, key: key) }
        func add(_ key: UInt64) { pipes.add(key: key) }

        func accept(foundNone: Bool) {
            count.willAccept()
            count.didAccept(foundNone: foundNone)
        }

        func hangUp(_ key: UInt64) -> Bool {
            let isKnown = pipes.didHangUp(key)
            if isKnown { count.pipeDidHangUp() }
            return isKnown
        }
    }

    @Test("a port without an address is notified when its last right ends")
    func local() {
        let bench = Bench(hasAddress: false)
        #expect(bench.verdict() == "wait")
        bench.count.rightWasMade()
        #expect(bench.verdict() == "wait")
        bench.count.rightDidEnd()
        #expect(bench.verdict() == "notify")
    }

    @Test("a port with an address waits for the first process that had a right")
    func first() {
        let bench = Bench()
        bench.count.rightWasMade()
        bench.count.rightDidEnd()
        #expect(bench.verdict() == "wait")
    }

    @Test("a right that left counts until its pipe has hung up and no client waits")
    func left() {
        let bench = Bench()
        bench.count.rightWasMade()
        #expect(bench.open("a", 1) == "a")
        #expect(bench.verdict() == "wait")
        bench.count.rightDidEnd()
        #expect(bench.verdict() == "release a")
        #expect(bench.verdict() == "wait" && bench.pipes.isAwaitingEnds)
        #expect(bench.hangUp(1))
        #expect(bench.verdict() == "accept")
        bench.accept(foundNone: false)
        #expect(bench.verdict() == "accept")
        bench.accept(foundNone: true)
        #expect(bench.verdict() == "notify")
    }

    @Test("an accept that began before the last sender ended proves nothing, nor does one beside it")
    func outdated() {
        let bench = Bench()
        bench.count.clientDidConnect()
        bench.count.willAccept()
        bench.count.clientDidDisconnect()
        bench.accept(foundNone: true)
        #expect(bench.verdict() == "wait")
        bench.count.didAccept(foundNone: true)
        #expect(bench.verdict() == "accept")
        bench.accept(foundNone: true)
        #expect(bench.verdict() == "notify")
    }

    @Test("a port has two pipes at most: the second is released when the first has hung up")
    func second() {
        let bench = Bench()
        #expect(bench.open("a", 1) == "a")
        #expect(bench.verdict() == "release a")
        #expect(bench.open("b", 2) == "b" && bench.open("c", 3) == "b")
        #expect(bench.verdict() == "wait")
        #expect(!bench.hangUp(2) && !bench.pipes.contains(3))
        #expect(bench.hangUp(1) && !bench.pipes.contains(1))
        #expect(bench.verdict() == "release b")
        #expect(bench.hangUp(2))
        bench.accept(foundNone: true)
        #expect(bench.verdict() == "notify")
    }

    @Test("the pipe of a client counts from its announcement on, also after the client")
    func announced() {
        let bench = Bench()
        bench.count.clientDidConnect()
        bench.add(5)
        bench.count.clientDidDisconnect()
        bench.accept(foundNone: true)
        #expect(bench.verdict() == "wait")
        #expect(bench.hangUp(5))
        bench.accept(foundNone: true)
        #expect(bench.verdict() == "notify")
    }

    @Test("before the first request rights leave with their address alone, but a client's pipe counts from then on")
    func uncounted() {
        let bench = Bench(counts: false)
        #expect(Self.name(bench.pipes.export) == "address")
        bench.count.clientDidConnect()
        bench.add(1)
        bench.count.clientDidDisconnect()
        bench.pipes.beginCounting()
        #expect(Self.name(bench.pipes.export) == "new")
        #expect(bench.verdict() == "wait")
        #expect(bench.hangUp(1))
        #expect(bench.verdict() == "accept")
    }

    @Test("a client announces one pipe")
    func client() {
        var presence = ClientPresence<String>.none
        #expect(presence.end == nil)
        let ends = ["a", "b"].map { presence.didAnnounce($0) }
        #expect(ends == ["a", "a"] && presence.end == "a")
    }

    private static func name(_ export: PresenceExport<String>) -> String {
        switch export {
        case .address: "address"
        case .end(let end): end
        case .newPipe: "new"
        }
    }
}
