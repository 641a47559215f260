// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import TestSupport
import Testing

/// The main loop runs in a program of its own (`main-loop-peer`): a test process does not run tests on its main thread.
@Suite(.leakCheck) struct MainQueueTests {
    private static let pass = ["beforeTimers", "beforeSources"]
    private static let waitingPass = pass + ["beforeWaiting", "afterWaiting"]

    /// What a scenario prints, over this library's loop and over CoreFoundation's.
    private func traces(of scenario: String) async throws -> (ours: [String], theirs: [String]) {
        (try await trace(of: scenario, over: "ours"), try await trace(of: scenario, over: "cf"))
    }

    private func trace(of scenario: String, over loop: String) async throws -> [String] {
        let peer = try ChildProcess(try builtProduct("main-loop-peer"), [scenario, loop])
        peer.closeInput()
        let result = try await peer.waitForExit()
        #expect(result.end == .exited(0))
        #expect(result.errors == "")
        return result.output.split(separator: "\n").map(String.init)
    }

    @Test("S8: the main loop serves the main dispatch queue: blocks from before, from inside, from another thread")
    func blocks() async throws {
        let (ours, theirs) = try await traces(of: "blocks")
        #expect(ours == ["before true", "inner", "other thread's true", "stopped"])
        #expect(ours == theirs)
    }

    @Test("S8: the main actor runs on the main loop, and a handler may assume to be on it")
    func mainActor() async throws {
        let (ours, theirs) = try await traces(of: "actor")
        #expect(ours == ["main actor true", "sum 3", "assumed", "stopped"])
        #expect(ours == theirs)
    }

    @Test("S8, S10: from the second pass on the queue goes first and no wait is reported, but not twice in a row")
    func order() async throws {
        let (ours, theirs) = try await traces(of: "order")
        #expect(
            ours == ["entry"] + Self.waitingPass + ["first block"] + Self.pass + ["source", "second block"]
                + Self.waitingPass + ["third block", "exit", "stopped"])
        #expect(ours == theirs)
    }

    @Test("CF 1: the main queue keeps a run in a common mode going, and its service is no handled source")
    func idle() async throws {
        let (ours, theirs) = try await traces(of: "idle")
        let polling = ["entry"] + Self.pass
        #expect(
            ours == ["entry"] + Self.waitingPass + ["exit", "timedOut"] + polling + ["exit", "timedOut"] + polling
                + ["block", "exit", "timedOut"])
        #expect(ours == theirs)
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

    @Test("CF 1: it keeps no other mode going")
    func empty() async throws {
        let (ours, theirs) = try await traces(of: "empty")
        #expect(ours == ["default timedOut", "unknown finished", "default timedOut"])
        #expect(ours == theirs)
    }

    @Test("S12: a nested run in a block of the queue does not serve it; what came meanwhile is served after it")
    func nested() async throws {
        let (ours, theirs) = try await traces(of: "nested")
        #expect(ours == ["nested stopped", "after", "stopped"])
        #expect(ours == theirs)
    }

    @Test("CF 1: inside of a block the queue keeps no run going")
    func nestedAlone() async throws {
        let (ours, theirs) = try await traces(of: "nested-alone")
        #expect(ours == ["nested finished", "stopped"])
        #expect(ours == theirs)
    }

    @Test("S13: a block of the queue may stop the run, and the next run serves the queue again")
    func stop() async throws {
        let (ours, theirs) = try await traces(of: "stop")
        #expect(ours == ["stopped", "second run", "stopped"])
        #expect(ours == theirs)
    }

    @Test("another thread may wait for the main thread with DispatchQueue.main.sync")
    func sync() async throws {
        let (ours, theirs) = try await traces(of: "sync")
        #expect(ours == ["sync 1 true", "sync 2 true", "sync 3 true", "stopped"])
        #expect(ours == theirs)
    }

    @Test("a queue that is never empty and a timer that is always due do not keep each other waiting")
    func fairness() async throws {
        #expect(try await trace(of: "fair", over: "ours") == ["stopped"])
    }

    @Test("S1: the main loop is found from everywhere and accepts work from every thread")
    func mainLoop() async throws {
        let trace = try await trace(of: "main", over: "ours")
        #expect(trace == ["true true", "false false true", "performed true", "false 1"])
    }

    @Test("S9, S22: monitors, traces and stacks show the main queue's service")
    func monitor() async throws {
        let trace = try await trace(of: "monitor", over: "ours")
        #expect(trace == ["main dispatch queue in default", "traced true", "stack true", "stopped"])
    }

    @Test("S11: requests to the main thread run there, waited for, later and inline, and may be cancelled")
    func performOnMain() async throws {
        let trace = try await trace(of: "perform", over: "ours")
        #expect(trace == ["waited true true", "later true", "inline", "stopped"])
    }

    @Test("F-B4: a main loop that begins without a descriptor left runs, and serves the queue when there is one")
    func atLimit() async throws {
        #expect(try await trace(of: "at-limit", over: "ours") == ["restored", "block", "stopped"])
    }

    @Test("S3: the queue is served in each common mode and in no other")
    func modes() async throws {
        #expect(try await trace(of: "modes", over: "ours") == ["private timedOut", "block", "shared stopped"])
    }
}
