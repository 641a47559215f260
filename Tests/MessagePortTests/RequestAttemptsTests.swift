// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import Testing

@Suite("The attempts of a request") struct RequestAttemptsTests {
    private let died = PortError(.peerDied, delivery: .read)
    private let gone = PortError(.deadName)
    private let noOwner = PortError(.nameWaitTimedOut, delivery: .notSent)

    @Test("a request that was not sent is for the next owner, within the limit of the first attempt")
    func notSent() {
        var attempts = RequestAttempts(sendLimit: .seconds(5), replyLimit: .seconds(5), isIdempotent: false)
        let deadline = attempts.sendDeadline
        let mayRepeat = attempts.mayRepeat(after: gone)
        #expect(mayRepeat)
        #expect(attempts.sendDeadline == deadline)
        #expect(attempts.outcome(noOwner) == noOwner)
        let limit = attempts.didSend()
        #expect(limit == .seconds(5))
    }

    @Test("a request that was sent is repeated only if it is idempotent")
    func sent() {
        for isIdempotent in [false, true] {
            var attempts = RequestAttempts(sendLimit: .seconds(5), replyLimit: .seconds(5), isIdempotent: isIdempotent)
            _ = attempts.didSend()
            let mayRepeat = attempts.mayRepeat(after: died)
            #expect(mayRepeat == isIdempotent)
            for code in [PortError.Code.replyTimedOut, .replyDropped, .remoteError, .cancelled, .peerRefused] {
                let mayRepeat = attempts.mayRepeat(after: PortError(code))
                #expect(!mayRepeat)
            }
        }
    }

    @Test("what fails before it is sent again fails as the attempt before did, whose message may have been read")
    func outcome() {
        var attempts = RequestAttempts(sendLimit: .seconds(5), replyLimit: .seconds(5), isIdempotent: true)
        _ = attempts.didSend()
        _ = attempts.mayRepeat(after: died)
        #expect(attempts.outcome(noOwner) == died)
        let timeout = PortError(.replyTimedOut)
        #expect(attempts.outcome(timeout) == timeout)
    }

    @Test("all attempts together have one limit for the reply")
    func limits() {
        var attempts = RequestAttempts(sendLimit: .seconds(500), replyLimit: .seconds(100), isIdempotent: true)
        let first = attempts.didSend()
        _ = attempts.mayRepeat(after: died)
        #expect(attempts.sendDeadline <= .after(.seconds(100)))
        let second = attempts.didSend()
        #expect(second <= first)
        var unlimited = RequestAttempts(sendLimit: .unlimited, replyLimit: .unlimited, isIdempotent: true)
        let limit = unlimited.didSend()
        #expect(limit == .unlimited)
        let mayRepeat = unlimited.mayRepeat(after: died)
        #expect(mayRepeat)
        #expect(unlimited.sendDeadline == .distantFuture)
    }
}
