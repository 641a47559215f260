// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import TestSupport
import Testing

@Suite("CFMessagePort", .leakCheck(warmingUp: PortBench.warmUp), .serialized) struct RoundTripTests {
    @Test("a request of the thread that serves the port is answered in the mode in which it waits")
    func sameThread() async throws {
        try await onLoopThread {
            let name = PortBench.name() as CFString
            var free: DarwinBoolean = true
            let port = CFMessagePortCreateLocal(
                nil, name, { _, id, data, _ in reply("\(id) \(data?.length ?? -1)") }, nil, &free)
            #expect(port != nil && !free.boolValue)
            let source = CFMessagePortCreateRunLoopSource(nil, port, 0)
            CFRunLoopAddSource(CFRunLoopGetCurrent(), source, .defaultMode)
            let remote = CFMessagePortCreateRemote(nil, name)
            var answer: Unmanaged<CFData>?
            let status = CFMessagePortSendRequest(
                remote, 7, Data([1, 2, 3]) as CFData, 1, 10, CFRunLoopMode.defaultMode.rawValue, &answer)
            #expect(status == kCFMessagePortSuccess)
            #expect(answer.map { text($0.takeRetainedValue()) } == "7 3")
            CFMessagePortInvalidate(port)
            #expect(!CFMessagePortIsValid(port) && !CFMessagePortIsValid(remote))
        }
    }
}
