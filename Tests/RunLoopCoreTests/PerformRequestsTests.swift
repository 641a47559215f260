// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization
import TestSupport
import Testing

@testable import RunLoopCore

@Suite(.leakCheck) struct PerformRequestsTests {
    @Test("requests are found by number and by target, in the order in which they were made")
    func finding() async throws {
        try await onLoop { loop in
            let targets = (0..<2).map { _ in LifeProbe(Counter("targets")) }
            let made = (0..<8).map { PerformRequest(on: loop, for: $0 == 7 ? nil : targets[$0 % 2]) {} }
            var requests = PerformRequests()
            for request in made.reversed() { requests.insert(request) }
            #expect(requests.all == made)
            #expect(requests.requests(for: ObjectIdentifier(targets[1])) == [made[1], made[3], made[5]])
            #expect(requests.requests(for: ObjectIdentifier(loop)).isEmpty)
            for request in made {
                let removed = [requests.remove(request.id), requests.remove(request.id)]
                #expect(removed == [request, nil])
            }
            let isEmpty = requests.isEmpty
            #expect(isEmpty)
        }
    }

    @Test("a loop keeps nothing of requests that were called, cancelled, or waited for until the limit")
    func nothingLeft() async throws {
        try await onLoop { loop in
            let target = LifeProbe(Counter("targets"))
            for kind in RequestKind.allCases {
                kind.perform(on: loop, for: target) {}
                kind.perform(on: loop, in: ["other"], for: target) {}.cancel()
                kind.perform(on: loop, in: ["other", .common], for: target) {}
            }
            loop.cancelPerformRequests(for: target)
            kindsOnOtherThread(loop)
            loop.perform(after: .zero) {}
            loop.perform(for: target) {}
            #expect(loop.runGuarded() == .finished)
            let isClean = loop.state.withLock { state in
                state.requests.isEmpty && state.blocks.isEmpty && state.everyItem.isEmpty
            }
            #expect(isClean)
        }
    }

    private func kindsOnOtherThread(_ loop: ThreadRunLoop) {
        #expect(throws: RunLoopError(.timedOut)) {
            try runOnThread { try loop.performAndWait(in: ["other"], within: .milliseconds(1)) {} }.join()
        }
    }
}
