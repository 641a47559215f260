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
}
