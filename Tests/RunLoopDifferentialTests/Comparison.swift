// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import TestSupport
import Testing

/// The traces of a scenario on the two loops.
struct Comparison: Sendable {
    let scenario: Scenario
    let coreFoundation: Trace
    let package: Trace
    /// What was done, on either loop.
    let reach: Reach

    /// Plays a scenario on both loops, each on a thread of its own, so that each loop is a new one. Blocks.
    init(_ scenario: Scenario) throws {
        self.scenario = scenario
        let other = runOnThread(name: "CFRunLoop") { try Director.play(scenario, on: CoreFoundationLoop.self) }
        let own = runOnThread(name: "ThreadRunLoop") { try Director.play(scenario, on: PackageLoop.self) }
        (package, reach) = try own.join()
        coreFoundation = try other.join().trace
    }

    var isEqual: Bool { coreFoundation == package }

    /// The scenario with everything left out without which the loops still differ. A loop that sleeps where it must not
    /// makes that slow: then it ends early.
    func shrunk() throws -> Comparison {
        let deadline = MonotonicInstant.after(Limit.longest)
        var smallest = self
        var hasChanged = true
        while hasChanged {
            hasChanged = false
            for candidate in smallest.scenario.smaller where MonotonicInstant.now < deadline {
                let comparison = try Comparison(candidate)
                if comparison.isEqual { continue }
                smallest = comparison
                hasChanged = true
                break
            }
        }
        return smallest
    }
}

extension Comparison: CustomStringConvertible {
    var description: String {
        """
        \(scenario)
        CFRunLoop:     \(coreFoundation)
        ThreadRunLoop: \(package)
        """
    }
}

extension Scenario {
    /// The scenario with one thing less, in every way, the largest things first.
    fileprivate var smaller: [Scenario] {
        var all: [Scenario] = []
        for item in items { all.append(without(item.name)) }
        for index in steps.indices { all.append(changed { $0.steps.remove(at: index) }) }
        for item in items.indices {
            for call in items[item].script.indices {
                for action in items[item].script[call].indices {
                    all.append(changed { $0.items[item].script[call].remove(at: action) })
                }
            }
        }
        for index in items.indices {
            if items[index].order != 0 { all.append(changed { $0.items[index].order = 0 }) }
            guard case .observer(let activities, let repeats) = items[index].kind, activities.count > 1 else {
                continue
            }
            for activity in activities {
                let others = activities.filter { $0 != activity }
                all.append(changed { $0.items[index].kind = .observer(others, repeats: repeats) })
            }
        }
        return all
    }

    private func without(_ name: String) -> Scenario {
        changed { scenario in
            scenario.items.removeAll { $0.name == name }
            scenario.steps.removeAll { $0.item == name }
            for item in scenario.items.indices {
                for call in scenario.items[item].script.indices {
                    scenario.items[item].script[call].removeAll { $0.item == name }
                }
            }
        }
    }

    private func changed(_ change: (inout Scenario) -> Void) -> Scenario {
        var copy = self
        change(&copy)
        return copy
    }
}
