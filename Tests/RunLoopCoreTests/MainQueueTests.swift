// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import TestSupport
import Testing

/// The main loop runs in a program of its own (`main-loop-peer`): a test process does not run tests on its main thread.
@Suite(.leakCheck) struct MainQueueTests {
    private static let pass = ["beforeTimers", "beforeSources"]
    private static let waitingPass = pass + ["beforeWaiting", "afterWaiting"]

    private func trace(of scenario: String, over loop: String) async throws -> [String] {
        let peer = try ChildProcess(try builtProduct("main-loop-peer"), [scenario, loop])
        peer.closeInput()
        let result = try await peer.waitForExit()
        #expect(result.end == .exited(0))
        #expect(result.errors == "")
        return result.output.split(separator: "\n").map(String.init)
    }

    /// What a program of the main queue prints, and the fact that this shows.
    struct Scenario: Sendable, CustomTestStringConvertible {
        var fact: String
        var name: String
        var lines: [String]

        var testDescription: String { fact }
    }

    private static let scenarios = [
        Scenario(
            fact:
                "S8: the main loop serves the main dispatch queue: blocks from before, from inside, from another thread",
            name: "blocks",
            lines: ["before true", "inner", "other thread's true", "stopped"]),
        Scenario(
            fact: "S8: the main actor runs on the main loop, and a handler may assume to be on it",
            name: "actor",
            lines: ["main actor true", "sum 3", "assumed", "stopped"]),
        Scenario(
            fact:
                "S8, S10: from the second pass on the queue goes first and no wait is reported, but not twice in a row",
            name: "order",
            lines: ["entry"] + waitingPass + ["first block"] + pass + ["source", "second block"] + waitingPass + [
                "third block", "exit", "stopped",
            ]),
        Scenario(
            fact: "CF 1: the main queue keeps a run in a common mode going, and its service is no handled source",
            name: "idle",
            lines: ["entry"] + waitingPass + ["exit", "timedOut"] + (["entry"] + pass) + ["exit", "timedOut"]
                + (["entry"] + pass) + ["block", "exit", "timedOut"]),
        Scenario(
            fact: "CF 1: it keeps no other mode going",
            name: "empty",
            lines: ["default timedOut", "unknown finished", "default timedOut"]),
        Scenario(
            fact: "S12: a nested run in a block of the queue does not serve it; what came meanwhile is served after it",
            name: "nested",
            lines: ["nested stopped", "after", "stopped"]),
        Scenario(
            fact: "CF 1: inside of a block the queue keeps no run going",
            name: "nested-alone",
            lines: ["nested finished", "stopped"]),
        Scenario(
            fact: "S13: a block of the queue may stop the run, and the next run serves the queue again",
            name: "stop",
            lines: ["stopped", "second run", "stopped"]),
        Scenario(
            fact: "another thread may wait for the main thread with DispatchQueue.main.sync",
            name: "sync",
            lines: ["sync 1 true", "sync 2 true", "sync 3 true", "stopped"]),
    ]

    @Test("the main queue is served as by CoreFoundation's loop", arguments: scenarios)
    func asCoreFoundation(scenario: Scenario) async throws {
        let ours = try await trace(of: scenario.name, over: "ours")
        #expect(ours == scenario.lines)
        #expect(try await trace(of: scenario.name, over: "cf") == ours)
    }

    @Test(
        "where eventfds are refused, the main loop says once that it does not serve the queue, and goes on",
        arguments: [
            "ENOSYS", "EPERM",
        ])
    func refused(error: String) async throws {
        let peer = try ChildProcess.refusing(
            ["eventfd2=\(error)"], try builtProduct("main-loop-peer"), ["unserved", "ours"])
        let result = try await peer.waitForExit()
        #expect(result.end == .exited(0))
        #expect(result.output == "timer 1\nstopped\ntimer 2\nstopped\ntimedOut\n")
        let sentences = result.errors.split(separator: "\n")
        #expect(sentences.count == 1)
        #expect(sentences.first?.hasPrefix("The main run loop does not serve the main dispatch queue") == true)
    }

    private static let ownScenarios = [
        Scenario(
            fact: "a queue that is never empty and a timer that is always due do not keep each other waiting",
            name: "fair",
            lines: ["stopped"]),
        Scenario(
            fact: "S1: the main loop is found from everywhere and accepts work from every thread",
            name: "main",
            lines: ["true true", "false false true", "performed true", "false 1"]),
        Scenario(
            fact: "S9, S22: monitors, traces and stacks show the main queue's service",
            name: "monitor",
            lines: ["main dispatch queue in default", "traced true", "stack true", "stopped"]),
        Scenario(
            fact: "S11: requests to the main thread run there, waited for, later and inline, and may be cancelled",
            name: "perform",
            lines: ["waited true true", "later true", "inline", "stopped"]),
        Scenario(
            fact:
                "F-B4: a main loop that begins without a descriptor left runs, and serves the queue when there is one",
            name: "at-limit",
            lines: ["restored", "block", "stopped"]),
        Scenario(
            fact: "S3: the queue is served in each common mode and in no other",
            name: "modes",
            lines: ["private timedOut", "block", "shared stopped"]),
    ]

    @Test("the main loop does what the name of the scenario says", arguments: ownScenarios)
    func own(scenario: Scenario) async throws {
        #expect(try await trace(of: scenario.name, over: "ours") == scenario.lines)
    }
}
