// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import TestSupport
import Testing

/// Reports when it is destroyed, and on which thread.
private final class Witness: Sendable {
    let name: String
    let destroyed: Recorder<String>

    init(_ name: String, _ destroyed: Recorder<String>) {
        self.name = name
        self.destroyed = destroyed
    }

    deinit { destroyed.append("\(name) on \(sysThreadID())") }
}

@Suite("ThreadLocal", .leakCheck) struct ThreadLocalTests {
    private static let plain = ThreadLocal<Witness>()
    private static let reported = Recorder<String>("ends of threads")
    private static let reporting = ThreadLocal<Witness> { witness in
        reported.append("\(witness.name), still the value: \(valueOfReporting() === witness)")
    }
    private static func valueOfReporting() -> Witness? { reporting.value }

    @Test("a thread starts without a value, and each thread has its own")
    func perThread() async throws {
        let destroyed = Recorder<String>()
        let (first, second) = (Gate("the first thread"), Gate("the second thread"))
        let names = [("one", first, second), ("two", second, first)].map { name, own, other in
            runOnThread { () -> [String?] in
                let before = Self.plain.value?.name
                Self.plain.value = Witness(name, destroyed)
                own.open()
                other.wait()
                return [before, Self.plain.value?.name]
            }
        }
        #expect(try await names[0].join() == [nil, "one"])
        #expect(try await names[1].join() == [nil, "two"])
        #expect(destroyed.count == 2)
    }

    @Test("the value is destroyed on its thread, before a join returns")
    func destroyedAtEnd() async throws {
        let destroyed = Recorder<String>()
        let thread = try await onNewThread {
            Self.plain.value = Witness("value", destroyed)
            return sysThreadID()
        }
        #expect(destroyed.elements == ["value on \(thread)"])
    }

    @Test("a value that is replaced or removed is released at once")
    func replaced() async throws {
        let destroyed = Recorder<String>()
        let counts = try await onNewThread {
            Self.plain.value = Witness("first", destroyed)
            Self.plain.value = Witness("second", destroyed)
            let afterReplacing = destroyed.count
            Self.plain.value = nil
            Self.plain.value = nil
            return [afterReplacing, destroyed.count]
        }
        #expect(counts == [1, 2])
    }

    @Test("the end of a thread is reported once, while the object is still the slot's value")
    func reported() async throws {
        let destroyed = Recorder<String>()
        _ = Self.reported.takeAll()
        try await onNewThread { Self.reporting.value = Witness("value", destroyed) }
        #expect(Self.reported.takeAll() == ["value, still the value: true"])
        #expect(destroyed.count == 1)
    }

    @Test("the end of a thread whose value was removed is not reported")
    func unreported() async throws {
        let destroyed = Recorder<String>()
        _ = Self.reported.takeAll()
        try await onNewThread {
            Self.reporting.value = Witness("value", destroyed)
            Self.reporting.value = nil
        }
        #expect(Self.reported.takeAll().isEmpty)
        #expect(destroyed.count == 1)
    }
}
