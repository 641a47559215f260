// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import TestSupport
import Testing

/// Plays the scenarios of a row and compares each loop's trace with the one that is written down.
func showDifference(_ id: String, sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let proofs = KnownDifference.all.filter { $0.id == id }.map(\.proof)
    #expect(!proofs.isEmpty, "no such row", sourceLocation: sourceLocation)
    for proof in proofs {
        guard case .traces(let scenario, let coreFoundation, let package) = proof else { continue }
        let comparison = try await offThePool { try Comparison(scenario) }
        #expect(comparison.coreFoundation == coreFoundation, "\(comparison)", sourceLocation: sourceLocation)
        #expect(comparison.package == package, "\(comparison)", sourceLocation: sourceLocation)
        #expect(coreFoundation != package, "the row shows no difference", sourceLocation: sourceLocation)
    }
}

@Suite(LeakCheck.withCoreFoundation, Settling()) struct KnownDifferenceTests {
    @Test("D6: a stop that comes too early or with another result stays pending, and goes first")
    func pendingStop() async throws { try await showDifference("D6") }

    @Test("D7: stopped takes precedence over timed out")
    func resultOrder() async throws { try await showDifference("D7") }

    @Test("D20: a wake-up is no event, and timers come before ports")
    func events() async throws { try await showDifference("D20") }

    @Test("D21: what is removed by a callout of its own phase is not called any more")
    func removedByCallout() async throws { try await showDifference("D21") }

    @Test("D22: a nested run in a block continues with the blocks that were posted before it")
    func blocksInside() async throws { try await showDifference("D22") }

    @Test("D24: a ready source that was performed waits for the others")
    func passes() async throws { try await showDifference("D24") }

    @Test("D26: an observer of afterWaiting may run the loop, and that run gets the event")
    func takenEvent() async throws { try await showDifference("D26") }

    @Test("D27: an invalid source is no longer in the common modes")
    func stranded() async throws { try await showDifference("D27") }

    @Test("D31: a timer that is given a date in its own call gets it in all of its modes")
    func dateInAllModes() async throws { try await showDifference("D31") }
}
