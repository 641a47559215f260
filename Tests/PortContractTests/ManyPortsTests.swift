// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite("many ports", .contract) struct ManyPortsTests {
    /// 100,000, or fewer under a sanitizer, which needs ten times as long, unless the environment says otherwise.
    private static let count: Int = {
        if let text = sysEnvironment("PORT_TEST_PORTS"), let count = Int(text) { return count }
        return dlsym(nil, "__tsan_init") ?? dlsym(nil, "__asan_init") == nil ? 100_000 : 10_000
    }()

    @Test("very many ports on one loop need no descriptor, little memory, and are all served")
    func onOneLoop() async {
        // A process of its own: other tests use the heap, too.
        await #expect(processExitsWith: .success) {
            await Pools.start()
            try await onBench(over: .memory) { _ in
                let loop = ThreadRunLoop.current
                let idle = RunLoopSource {}
                loop.add(idle)
                loop.run(for: .milliseconds(1))  // its own descriptor
                let seen = Counter("messages")
                let descriptors = openDescriptors()
                let before = heapBytes()
                let ports = (0..<Self.count).map { _ in MachPort { _, _ in seen.increment() } }
                let made = heapBytes()
                for port in ports { try port.schedule(on: loop) }
                let scheduled = heapBytes()
                #expect(openDescriptors() == descriptors)
                if before > 0 {
                    let array = MemoryLayout<MachPort>.stride * ports.capacity
                    let (idleSize, size) = (
                        (made - before - array) / Self.count, (scheduled - before - array) / Self.count
                    )
                    print("bytes for each idle port: \(idleSize), on a loop: \(size)")
                    // The heap allocates in units of 16 bytes.
                    #expect(idleSize < 288 + 16)
                    #expect(size <= 536)
                }
                for port in ports { try port.makeSendRight().send(MachMessage()) }
                while seen.value < Self.count, loop.run(for: .milliseconds(1)) == .timedOut {}
                #expect(seen.value == Self.count)
                #expect(openDescriptors() == descriptors)
                for port in ports { port.invalidate() }
                idle.invalidate()
            }
        }
    }
}
