// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite("many ports", .contract) struct ManyPortsTests {
    /// 100,000, or fewer under a sanitizer, which takes ten times as long, unless the environment says otherwise.
    private static let count: Int = {
        if let text = sysEnvironment("PORT_TEST_PORTS"), let count = Int(text) { return count }
        return dlsym(nil, "__tsan_init") ?? dlsym(nil, "__asan_init") == nil ? 100_000 : 10_000
    }()

    @Test("very many ports on one loop take no descriptor, little memory, and are all heard")
    func onOneLoop() async throws {
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
                // The heap deals in 16 bytes; other tests use it meanwhile.
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

/// How many bytes of the heap are in use, in all arenas (`malloc_info(3)`); zero where that cannot be told, and near it
/// where the C library's heap is not the one in use.
private func heapBytes() -> Int {
    typealias Function = @convention(c) (CInt, UnsafeMutableRawPointer) -> CInt
    var (text, size): (UnsafeMutablePointer<CChar>?, Int) = (nil, 0)
    guard let symbol = dlsym(nil, "malloc_info"), let stream = open_memstream(&text, &size) else { return 0 }
    _ = unsafeBitCast(symbol, to: Function.self)(0, UnsafeMutableRawPointer(stream))
    fclose(stream)
    defer { free(text) }
    // After the arenas come the totals: free in "fast" and "rest", mapped one by one, and taken from the system.
    let totals = text.map { String(cString: $0) }?.split(separator: "</heap>").last ?? ""
    func total(_ name: String) -> Int {
        guard let line = totals.split(separator: "\n").first(where: { $0.hasPrefix("<\(name)") }),
            let digits = line.split(separator: "size=\"").last?.prefix(while: \.isNumber)
        else { return 0 }
        return Int(digits) ?? 0
    }
    return total("system type=\"current\"") + total("total type=\"mmap\"") - total("total type=\"fast\"")
        - total("total type=\"rest\"")
}
