// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
package import Testing

/// The seed of this run's random tests: `PORT_TEST_SEED`, or a new one for each run. A test that carries `.seeded`
/// names the seed in each of its issues, so that the run can be repeated.
package enum Seed {
    /// The seed of this run.
    package static let value: UInt64 = {
        sysEnvironment("PORT_TEST_SEED").flatMap { UInt64($0) } ?? UInt64.random(in: .min ... .max)
    }()

    /// A generator that gives the same numbers in each run with the same seed.
    ///
    /// - Parameter stream: distinguishes the generators of one test.
    /// - Returns: the generator, at its start.
    package static func generator(stream: UInt64 = 0) -> SplitMix64 {
        SplitMix64(seed: value &+ stream &* 0x632B_E59B_D9B4_E019)
    }
}

/// A small deterministic random generator, after Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators".
package struct SplitMix64: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Starts at a seed.
    package init(seed: UInt64) {
        state = seed
    }

    /// The next 64 bits.
    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}

extension Trait where Self == IssueHandlingTrait {
    /// Each issue names the seed of the run.
    package static var seeded: Self {
        .compactMapIssues { issue in
            var issue = issue
            issue.comments.append("Repeat it with PORT_TEST_SEED=\(Seed.value)")
            return issue
        }
    }
}
