// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#if PORT_FAULTS

/// Forces results of system calls on the calling thread, so that tests reach the paths that a healthy system never
/// takes. Debug builds include it, and the builds of `Tests/optimized`.
package final class SystemCallFaults {
    /// What happens instead of, or to, a call.
    package enum Fault: Sendable {
        /// The call is not made; it fails with this error number. EINTR makes the wrapper call again.
        case fail(CInt)
        /// The call is made with at most this many bytes.
        case shorten(to: Int)
        /// The call is made after this closure was called on the same thread: it simulates an event between two calls.
        case precede(@Sendable () -> Void)
    }

    /// One rule: the next `times` uses of `call`, after the first `skipping`, meet `fault`.
    package struct Rule: Sendable {
        var call: SystemCall
        var fault: Fault
        var times: Int
        var skipping: Int

        package init(_ call: SystemCall, _ fault: Fault, times: Int = 1, skipping: Int = 0) {
            self.call = call
            self.fault = fault
            self.times = times
            self.skipping = skipping
        }
    }

    private var rules: [Rule]
    private var hits = 0
    private var calls: [SystemCall: Int] = [:]

    private init(_ rules: [Rule]) {
        self.rules = rules
    }

    private static let current = ThreadLocal<SystemCallFaults>()

    /// Runs `body` with `rules` in force on this thread.
    ///
    /// - Returns: the body's result, and how many calls met a rule.
    package static func with<Result, Failure: Error>(
        _ rules: [Rule], _ body: () throws(Failure) -> Result
    ) throws(Failure) -> (result: Result, hits: Int) {
        let faults = SystemCallFaults(rules)
        return (try faults.inForce { () throws(Failure) in try Refusals.notRemembering(body) }, faults.hits)
    }

    /// Runs `body` and counts the system calls that this thread makes meanwhile through this package.
    ///
    /// - Parameters:
    ///   - rules: the rules in force meanwhile.
    ///   - body: the closure to run.
    /// - Returns: the body's result, and how often each call was made, forced results included.
    /// - Throws: the body's error.
    package static func counting<Result, Failure: Error>(
        with rules: [Rule] = [], _ body: () throws(Failure) -> Result
    ) throws(Failure) -> (result: Result, calls: [SystemCall: Int]) {
        let faults = SystemCallFaults(rules)
        let result = try faults.inForce { () throws(Failure) in
            try rules.isEmpty ? body() : Refusals.notRemembering(body)
        }
        return (result, faults.calls)
    }

    private func inForce<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        let outer = Self.current.value
        Self.current.value = self
        defer { Self.current.value = outer }
        return try body()
    }

    static func forcedError(for call: SystemCall) -> SystemError? {
        guard let faults = current.value else { return nil }
        faults.calls[call, default: 0] += 1
        if case .precede(let body) = faults.consumeFault(call, where: { if case .precede = $0 { true } else { false } })
        {
            body()
        }
        let fault = faults.consumeFault(call) { if case .fail = $0 { true } else { false } }
        guard case .fail(let code) = fault else { return nil }
        return SystemError(code)
    }

    static func shortened(_ call: SystemCall, _ count: Int) -> Int {
        guard let faults = current.value,
            case .shorten(let limit) = faults.consumeFault(
                call, where: { if case .shorten = $0 { true } else { false } })
        else { return count }
        return min(count, limit)
    }

    private func consumeFault(_ call: SystemCall, where matches: (Fault) -> Bool) -> Fault? {
        guard let index = rules.firstIndex(where: { $0.call == call && $0.times > 0 && matches($0.fault) }) else {
            return nil
        }
        if rules[index].skipping > 0 {
            rules[index].skipping -= 1
            return nil
        }
        rules[index].times -= 1
        hits += 1
        return rules[index].fault
    }
}

#endif

/// The byte count of a transfer, which a test may have shortened.
func transferCount(_ call: SystemCall, _ count: Int) -> Int {
    #if PORT_FAULTS
    SystemCallFaults.shortened(call, count)
    #else
    count
    #endif
}
