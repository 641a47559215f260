// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite(.leakCheck) struct SendCreditTests {
    @Test("a connection whose port moves again and again retains no more than its first counts and its last")
    func renamed() throws {
        let credit = SendCredit(isUnlimited: false)
        var files: [WeakReference<SharedDescriptor>] = []
        for _ in 0..<50 {
            credit.didName(SendCredit.naming(), isOther: credit.willName())
            files.append(WeakReference(try #require(credit.question(.room)?.sentCount)))
            credit.portDidMove()
        }
        #expect(files.filter { $0.object != nil }.count <= 2)
    }

    @Test("what a port has granted under a number does not count for the next number")
    func lateGrant() throws {
        let credit = SendCredit(isUnlimited: false)
        let page = try GrantPage()
        try #require(page.word(at: 0)).store(8)
        credit.didName(SendCredit.naming(), isOther: credit.willName())
        let former = credit.key ?? 0
        credit.portDidMove()
        credit.didName(SendCredit.naming(), isOther: credit.willName())
        credit.didBegin(asking: 0)
        let grant = CreditQuery.Grant(page: page.file, index: 0)
        credit.accept(grant, for: former)
        let mayBeginBefore = credit.mayBegin
        #expect(!mayBeginBefore)
        credit.accept(grant, for: credit.key ?? 0)
        let mayBegin = credit.mayBegin
        #expect(mayBegin)
    }
}
