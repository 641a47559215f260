// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import MessagePort
import PortSystem
package import Testing

/// Runs `body` under another soft limit of the process's descriptors. The limit applies to the whole process: for exit
/// tests, and under `.leakCheck`.
///
/// - Parameters:
///   - limit: how many descriptors there may be; with zero, say, none can be opened and all stay open.
///   - body: the code to run.
/// - Returns: what `body` returns.
/// - Throws: what `body` throws.
package func withDescriptorLimit<Result, Failure: Error>(
    _ limit: Int, _ body: () throws(Failure) -> Result
) throws(Failure) -> Result {
    var old = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &old)
    var new = old
    new.rlim_cur = min(rlim_t(limit), old.rlim_max)
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &new)
    defer { setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &old) }
    return try body()
}

/// Runs `body` while this process may open only `room` more descriptors. The limit applies to the whole process: for exit
/// tests.
package func withDescriptorRoom<Result>(_ room: Int, _ body: () throws -> Result) throws -> Result {
    var old = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &old) == 0 else { throw SystemError(errno) }
    // The limit is one more than the highest number: fill the gaps below it first. Where another thread had a descriptor
    // open for a moment, a gap is left: dispatch reads the states of its threads so.
    var fillers: [SharedDescriptor] = []
    var numbers = openNumbers()
    while let gaps = numbers.max().map({ Int($0) + 1 - numbers.count }), gaps > 0 {
        for _ in 0..<gaps { fillers.append(SharedDescriptor(try sysOpen("/dev/null", .reading))) }
        numbers = openNumbers()
    }
    var lower = old
    lower.rlim_cur = rlim_t(numbers.count + room)
    guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &lower) == 0 else { throw SystemError(errno) }
    defer { setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &old) }
    return try withExtendedLifetime(fillers) { try body() }
}

/// The numbers of the open descriptors, without those that another thread has open for a moment.
private func openNumbers() -> Set<CInt> {
    var numbers = Set(openDescriptors().compactMap { CInt($0.split(separator: " ")[1]) })
    if let spare = ReservedDescriptor.shared.rawValue { numbers.insert(spare) }
    return numbers
}

/// Runs `body` and records an issue when other descriptors are open after it than before it. For code that runs without
/// other tests beside it: under `.leakCheck`, or in an exit test.
@discardableResult
package func expectNoNewDescriptors<Result>(
    sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Result
) rethrows -> Result {
    waitForIOThread()  // it may not have accepted a client yet
    let before = openDescriptors()
    defer {
        waitForIOThread()  // it may still hold what a client has sent
        compare(openDescriptors(), before, sourceLocation)
    }
    return try body()
}

/// The same for requests over a connection that may get rings meanwhile: the two ends of wake channels that this needs
/// stay open.
@discardableResult
package func expectNoNewDescriptorsButOfRings<Result>(
    sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Result
) rethrows -> Result {
    waitForIOThread()
    let before = openDescriptors()
    defer { compare(openDescriptors(), before, channelsAllowed: 2, sourceLocation) }
    return try body()
}

/// Runs `body` and records an issue when other descriptors are open after it than before it. For code that runs without
/// other tests beside it: under `.leakCheck`, or in an exit test.
@discardableResult
package func expectNoNewDescriptors<Result>(
    sourceLocation: SourceLocation = #_sourceLocation, isolation: isolated (any Actor)? = #isolation,
    _ body: () async throws -> sending Result
) async rethrows -> sending Result {
    await Pools.start()
    waitForIOThread()  // it may not have accepted a client yet
    let before = openDescriptors()
    defer {
        waitForIOThread()  // it may still hold what a client has sent
        compare(openDescriptors(), before, sourceLocation)
    }
    return try await body()
}

/// With rings from the first message on, an existing connection may get them.
private let channelsOfRings = sysEnvironment("PORT_RING") == "always" ? 4 : 0

private func compare(
    _ after: Set<String>, _ before: Set<String>, channelsAllowed: Int = channelsOfRings,
    _ sourceLocation: SourceLocation
) {
    var after = after
    let channels = after.subtracting(before).filter { $0.contains("socket:[") }
    if channels.count <= channelsAllowed { after.subtract(channels) }
    let differences =
        after.subtracting(before).sorted().map { "left behind: \($0)" }
        + before.subtracting(after).sorted().map { "gone, though another's: \($0)" }
    if differences.isEmpty { return }
    Issue.record("\(differences.joined(separator: "\n"))", sourceLocation: sourceLocation)
}
