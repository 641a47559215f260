// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// The leak rule of the tests. Every suite whose tests open a descriptor, start a thread or a process, or run an exit
// test (it makes pipes and a child) carries `.leakCheck`. The process has one table of descriptors, so such tests run
// one at a time, over all suites; tests of pure values need no leak check and run beside them.
//
// What pools make once for themselves is made before the first count: dispatch's manager with its epoll set,
// eventfd and timers, which Swift's tasks use too. A test that starts something else of that kind (Foundation's main
// run loop, say) does so in `warmingUp`.

import PortSystem
package import Testing

/// A trait: tests run one at a time, and none leaves behind a descriptor, a thread, a child process or a scratch
/// directory.
package struct LeakCheck: SuiteTrait, TestTrait, TestScoping {
    let threadNames: [String]
    let settles: Bool
    let warmUp: (@Sendable () throws -> Void)?

    /// Makes a leak check, with the parameters of `leakCheck(threadNames:settles:warmingUp:)`.
    package init(
        threadNames: [String] = [], settles: Bool = false, warmingUp warmUp: (@Sendable () throws -> Void)? = nil
    ) {
        self.threadNames = threadNames
        self.settles = settles
        self.warmUp = warmUp
    }

    package var isRecursive: Bool { true }

    package func scopeProvider(for test: Test, testCase: Test.Case?) -> LeakCheck? {
        testCase == nil ? nil : self
    }

    @TaskLocal private static var isCounting = false

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        if LeakCheck.isCounting { return try await function() }
        await LeakCheckLock.shared.acquire()
        let alarm = HangAlarm(test.name, test.sourceLocation)
        let result: Result<Void, any Error>
        do {
            try await LeakCheck.$isCounting.withValue(true) {
                try await counting(test.sourceLocation, function)
            }
            result = .success(())
        } catch {
            result = .failure(error)
        }
        await alarm.stop()
        await LeakCheckLock.shared.release()
        try result.get()
    }

    /// Records an issue when the current test has no leak check: that of a test beside it would count what it starts.
    static func expectInForce() {
        guard let test = Test.current, !test.traits.contains(where: { $0 is LeakCheck }) else { return }
        Issue.record(
            "The test starts a thread, so its suite must carry .leakCheck.", sourceLocation: test.sourceLocation)
    }

    /// Runs `function` and records an issue when it leaves something behind. Does not wait for other tests.
    package func counting(
        _ sourceLocation: SourceLocation = #_sourceLocation, _ function: @Sendable () async throws -> Void
    ) async throws {
        await Pools.start()
        try warmUp?()
        let before = ProcessState(threadNames: threadNames)
        defer {
            waitForIOThread()
            let differences = settledDifferences(from: before)
            if !differences.isEmpty {
                Issue.record("\(differences.joined(separator: "\n"))", sourceLocation: sourceLocation)
            }
        }
        try await function()
    }

    /// The kernel lists a thread for a moment after it was joined, so threads found by name are checked again until
    /// they are gone or the watchdog expires. Everything else must be right at the first check, unless the test
    /// settles.
    private func settledDifferences(from before: ProcessState) -> [String] {
        let deadline = Watchdog.deadline
        while true {
            let differences = ProcessState(threadNames: threadNames).differences(from: before)
            let mayPass = settles || differences.allSatisfy { $0.contains("thread") && $0.contains(" named ") }
            if differences.isEmpty || !mayPass || .now >= deadline { return differences }
            yieldThread()
        }
    }
}

extension Trait where Self == LeakCheck {
    /// Tests run one at a time, and none leaves behind a descriptor, a thread, a child process or a scratch directory.
    package static var leakCheck: Self { LeakCheck() }

    /// The same, for tests that need more.
    ///
    /// - Parameters:
    ///   - threadNames: beginnings of the kernel names of threads that the tested library starts itself.
    ///   - settles: whether leftovers may go away by themselves until the watchdog expires: for tests of tasks, whose
    ///     threads cannot be joined, and which retain what they used for a moment after they have returned their
    ///     values.
    ///   - warmUp: makes what the process retains forever; runs before each count, so it must be repeatable.
    /// - Returns: the trait.
    package static func leakCheck(
        threadNames: [String] = [], settles: Bool = false, warmingUp warmUp: (@Sendable () throws -> Void)? = nil
    ) -> Self {
        LeakCheck(threadNames: threadNames, settles: settles, warmingUp: warmUp)
    }
}

/// A lock for tasks, first come, first served: its holder may run. A waiting task blocks no thread.
private actor LeakCheckLock {
    static let shared = LeakCheckLock()
    private var isTaken = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func acquire() async {
        if !isTaken {
            isTaken = true
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }

    func release() {
        if waiting.isEmpty {
            isTaken = false
        } else {
            waiting.removeFirst().resume()
        }
    }
}
