// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
@testable import FoundationPorts
import Synchronization
import TestSupport
import Testing

@Suite("Locks and numbers of NSMachPorts", .machPorts, .serialized) struct NSMachPortForkTests {
    @Test("a forked child uses and releases ports while threads of its parent have their locks")
    func locked() async {
        await #expect(processExitsWith: .success) {
            try await onNewThread { try forkWithLocks() }
        }
    }

    @Test("D-N6: no port that is made later gets the number that an object without a port has")
    func unknownNumbers() {
        let before = PortObjects.shared.counts
        do {
            let first = NSMachPort()
            let unknown = (1...100).map { NSMachPort(machPort: first.machPort &+ $0) }.filter { !$0.isValid }
            let made = (0..<100).map { _ in NSMachPort() }
            #expect(Set(made.map(\.machPort)).isDisjoint(with: unknown.map(\.machPort)))
            for port in unknown {
                #expect(NSMachPort(machPort: port.machPort) == port && !port.isValid)
                #expect(NSMachPort.port(withMachPort: port.machPort) === port)
                #expect(!made.contains(port))
            }
            for port in made { port.invalidate() }
            first.invalidate()
        }
        #expect(PortObjects.shared.counts == before)
    }

    @Test("a source that another thread invalidates while it is added to the main loop is not served")
    func addedWhileInvalidated() async throws {
        let before = MainQueueService.shared.portCount
        for _ in 0..<rounds(300) {
            let port = CFMessagePortCreateLocal(nil, nil, { _, _, _, _ in nil }, nil, nil)
            let source = CFMessagePortCreateRunLoopSource(nil, port, 0)
            let start = Gate("the start")
            let threads = [
                runOnThread {
                    start.wait()
                    CFRunLoopAddSource(CFRunLoopGetMain(), source, .defaultMode)
                },
                runOnThread {
                    start.wait()
                    CFMessagePortInvalidate(port)
                },
            ]
            start.open()
            for thread in threads { try await thread.join() }
            // An entry would be there until the source is released.
            #expect(MainQueueService.shared.portCount == before)
            withExtendedLifetime(source) {}
        }
    }

    @Test("a source that ends after it was found, and before the main queue knows it, is not served")
    func endedBeforeKnown() throws {
        let before = MainQueueService.shared.portCount
        let local = CFMessagePortCreateLocal(nil, nil, { _, _, _, _ in nil }, nil, nil)
        let source = try #require(CFMessagePortCreateRunLoopSource(nil, local, 0))
        let served = try #require(PortSource.of(source))
        CFMessagePortInvalidate(local)
        MainQueueService.shared.add(served, source, mode: CFRunLoopMode.defaultMode.rawValue as String)
        #expect(MainQueueService.shared.portCount == before)
        withExtendedLifetime(source) {}
    }
}

/// The body of the test of locks: code that forks is for a thread of its own.
private func forkWithLocks() throws {
    var (port, numbers): (NSMachPort?, Numbers) = (NSMachPort(), Numbers())
    port?.setDelegate(numbers)
    let core = try #require(port?.core)
    let local = CFMessagePortCreateLocal(nil, nil, { _, _, _, _ in nil }, nil, nil)
    var source = CFMessagePortCreateRunLoopSource(nil, local, 0)
    let (isLocked, isForked) = (Gate("the locks"), Gate("the child"))
    let holder = runOnThread {
        core.state.withLock { _ in
            PortObjects.shared.state.withLock { _ in
                MainQueueService.shared.state.withLock { _ in
                    isLocked.open()
                    isForked.wait()
                }
            }
        }
    }
    isLocked.wait()
    let child = try forkInPlace()
    if child == 0 {
        alarm(20)
        let isInvalid = port?.isValid == false && port?.description.contains("invalid") == true
        _ = port?.delegate()
        port?.setDelegate(nil)
        port?.remove(from: .current, forMode: .default)
        port?.invalidate()
        port = nil
        source = nil
        let fresh = NSMachPort()
        _exit(isInvalid && fresh.isValid && NSMachPort.port(withMachPort: fresh.machPort) === fresh ? 0 : 1)
    }
    #expect(exitStatus(of: child) == 0)
    isForked.open()
    try holder.join()
    #expect(port?.isValid == true && port?.delegate() === numbers && source != nil)
    CFMessagePortInvalidate(local)
    port?.invalidate()
}
