// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import TestSupport
import Testing

@Suite("OutgoingPath: offers of rings", .census) struct OutgoingPathTests {
    @Test("F-B5: an offer that was answered before it was sent stays answered, and no other follows it")
    func answeredEarly() throws {
        var lane = OutgoingPath(use: .always)
        lane.didOffer(try RingEnd.make().end)
        let answered = lane.endOffer()
        #expect(answered != nil)
        lane.withdrawOffer()
        #expect(lane.nextOffer() == .none)
        #expect(!lane.isOffered)
    }

    @Test("an offer that found no room is repeated; one that was not answered is not")
    func withdrawn() throws {
        var lane = OutgoingPath(use: .always)
        #expect(lane.nextOffer() == .due)
        lane.didOffer(try RingEnd.make().end)
        #expect(lane.nextOffer() == .pending)
        lane.withdrawOffer()
        #expect(lane.nextOffer() == .due)
        #expect(lane.endOffer() == nil)
    }
}
