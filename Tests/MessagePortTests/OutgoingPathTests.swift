// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import TestSupport
import Testing

@Suite("OutgoingPath: offers of rings", .leakCheck) struct OutgoingPathTests {
    @Test("F-B5: an offer that was answered before it was sent stays answered, and no other follows it")
    func answeredEarly() throws {
        var path = OutgoingPath(use: .always)
        path.didOffer(try RingEnd.make().end)
        let answered = path.endOffer()
        #expect(answered != nil)
        path.withdrawOffer()
        #expect(path.isOfferDue() == false)
        #expect(!path.isOffered)
    }

    @Test("an offer that found no room is repeated; one that was not answered is not")
    func withdrawn() throws {
        var path = OutgoingPath(use: .always)
        #expect(path.isOfferDue() == true)
        path.didOffer(try RingEnd.make().end)
        #expect(path.isOffered)
        #expect(path.isOfferDue() == false)
        path.withdrawOffer()
        #expect(path.isOfferDue() == true)
        #expect(path.endOffer() == nil)
    }
}
