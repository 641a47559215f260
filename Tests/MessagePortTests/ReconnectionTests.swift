// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import RunLoopCore
import Testing

@Suite("Reconnection") struct ReconnectionTests {
    private let shortage = PortError(.descriptorLimit)
    private let failure = PortError(.watchLimit)

    /// What to do about the search now.
    private func next(_ reconnection: inout Reconnection) -> String {
        switch reconnection.nextSearch() {
        case .begin(let search, _, _)?: "begin \(search.number)\(search.isForSender ? " for a sender" : "")"
        case .pause(let search, let time, _)?: "pause \(search.number) for \(time)"
        case .end?: "end"
        case nil: "go on"
        }
    }

    private func makeNotice() -> Reconnection.Notice { Reconnection.Notice(on: .current, in: .default) { _ in } }

    private func makeOwner() -> SendRight { SendRight(DeadPort(.nowhere)) }

    @Test("a search that fails while a notice waits is repeated, after a shortage soon")
    func failures() {
        var reconnection = Reconnection()
        #expect(next(&reconnection) == "go on")
        let notice = makeNotice()
        #expect(reconnection.add(notice, from: .interrupted(nil)) == nil)
        #expect(next(&reconnection) == "begin 1")
        #expect(next(&reconnection) == "go on")
        #expect(reconnection.searchDidFail(1, failure).isEmpty)
        #expect(next(&reconnection) == "pause 2 for \(Tuning.timeUntilNextSearch)")
        #expect(next(&reconnection) == "go on")
        reconnection.pauseDidEnd(1)  // of another time
        #expect(next(&reconnection) == "go on")
        reconnection.pauseDidEnd(2)
        #expect(next(&reconnection) == "begin 3")
        #expect(reconnection.searchDidFail(3, shortage).isEmpty)
        #expect(next(&reconnection) == "pause 4 for \(Tuning.timeUntilRetry)")
        notice.cancel()
        #expect(next(&reconnection) == "end")
    }

    @Test("what begins to wait during the pause does not wait for its end, and does not get the failure before it")
    func pauses() {
        var reconnection = Reconnection()
        let notices = [makeNotice(), makeNotice()]
        #expect(reconnection.add(notices[0], from: .interrupted(nil)) == nil)
        #expect(next(&reconnection) == "begin 1")
        #expect(reconnection.failure(after: 0) == nil)
        #expect(reconnection.searchDidFail(1, failure).isEmpty)
        #expect(reconnection.failure(after: 0) == failure)
        #expect(reconnection.failure(after: reconnection.failureCount) == nil)
        #expect(next(&reconnection).hasPrefix("pause 2"))
        #expect(reconnection.add(notices[1], from: .interrupted(nil)) == nil)
        #expect(next(&reconnection) == "begin 3")
        for notice in notices { notice.cancel() }
    }

    @Test("a search is for senders as long as one waits")
    func senders() {
        var reconnection = Reconnection()
        let notice = makeNotice()
        #expect(reconnection.add(notice, from: .interrupted(nil)) == nil)
        #expect(next(&reconnection) == "begin 1")
        let sender = reconnection.makeNumber()
        reconnection.join(sender, .thread(ThreadEvent()))
        #expect(next(&reconnection) == "begin 3 for a sender")
        reconnection.leave(sender)
        #expect(next(&reconnection) == "begin 4")
        notice.cancel()
    }

    @Test("a refusal and a limit of the owner end it for good; this process's own limit of what waits does not")
    func ends() {
        let reasons: [(PortEndReason, SendRight.State)] = [
            (.refused(.peerRefused), .invalid(.refused(.peerRefused))),
            (.quota(.tooManyConnections), .invalid(.quota(.tooManyConnections))),
            (.quota(.peerNotReading), .interrupted(.quota(.peerNotReading))),
            (.invalidated, .interrupted(.invalidated)),
        ]
        for (reason, state) in reasons {
            var reconnection = Reconnection()
            let change = reconnection.adopt(makeOwner(), until: .distantPast)
            #expect(change?.state == .connected)
            let end = reconnection.ownerDidEnd(reconnection.generation, reason)
            #expect(end?.state == state)
            #expect(reconnection.state == state)
        }
    }

    @Test("an owner whose end is not reported is watched later, soon while a notice waits for the report")
    func unwatched() {
        var reconnection = Reconnection()
        _ = reconnection.adopt(makeOwner(), until: .distantPast)
        #expect(reconnection.unwatchedOwner(1)?.pause == Tuning.timeUntilNextSearch)
        let notice = makeNotice()
        #expect(reconnection.add(notice, from: .connected) == nil)
        #expect(reconnection.unwatchedOwner(1)?.pause == Tuning.timeUntilRetry)
        let requests = [NoticeRequest(), NoticeRequest()]
        let isFirstSet = reconnection.setRequest(requests[0], for: 1)
        #expect(isFirstSet)
        #expect(reconnection.unwatchedOwner(1) == nil)
        let isSecondSet = reconnection.setRequest(requests[1], for: 1)
        #expect(!isSecondSet)
        #expect(reconnection.unwatchedOwner(2) == nil)
        notice.cancel()
    }
}
