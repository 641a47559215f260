// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import TestSupport
import Testing

/// The 42 behaviours of CFRunLoop, as Docs/CFRunLoop.md numbers them: the rows of the table of differences that apply,
/// or none when both loops are equal.
enum Behaviour {
    static let differences: [Int: [String]] = [
        1: [], 2: ["D4"], 3: [], 4: ["D28"], 5: [], 6: ["D18"], 7: [], 8: ["D10"], 9: [], 10: [], 11: ["D23"], 12: [],
        13: ["D1"], 14: [], 15: ["D11"], 16: ["D11"], 17: ["D8"], 18: [], 19: ["D12", "D14"], 20: ["D13"], 21: [],
        22: ["D8", "D9"], 23: [], 24: [], 25: [], 26: [], 27: [], 28: ["D16"], 29: ["D15"], 30: [], 31: ["D17", "D29"],
        32: ["D30"], 33: [], 34: ["D6"], 35: ["D6"], 36: [], 37: [], 38: [], 39: ["D2", "D3"], 40: [], 41: [], 42: [],
    ]
}

/// Plays a scenario of a behaviour in which both loops are equal, and compares both with the trace that is written
/// down.
func showEqual(
    _ scenario: Scenario, _ trace: Trace, sourceLocation: SourceLocation = #_sourceLocation
) async throws {
    let comparison = try await offThePool { try Comparison(scenario) }
    #expect(comparison.coreFoundation == trace, "\(comparison)", sourceLocation: sourceLocation)
    #expect(comparison.package == trace, "\(comparison)", sourceLocation: sourceLocation)
}

extension LeakCheck {
    /// For tests in which a CFRunLoop is made.
    static var withCoreFoundation: LeakCheck { .leakCheck(warmingUp: { CoreFoundationLoop.warmUp() }) }
}
