// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import MessagePort
import NamedPortServer
import Synchronization
import TestSupport
import Testing

@Suite("Ports on the main run loop (D-M)", .machPorts, .serialized) struct MainQueueTests {
    /// Waits until the main queue has done what was on it.
    private func drain() async { await withCheckedContinuation { done in DispatchQueue.main.async { done.resume() } } }

    /// Adds to the main loop, as code that is not a task's.
    private func addToMain(_ port: NSMachPort, _ mode: RunLoop.Mode) { RunLoop.main.add(port, forMode: mode) }

    @Test(
        "D-M: here nobody runs the main loop, and the main queue serves a port on it, one by one and in order",
        arguments: [RunLoop.Mode.default, .common])
    func served(mode: RunLoop.Mode) async throws {
        let ports = MainQueueService.shared.portCount
        let (port, log) = (NSMachPort(), Recorder<UInt32>())
        let isOnMainQueue = Recorder<Bool>()
        let key = DispatchSpecificKey<Bool>()
        DispatchQueue.main.setSpecific(key: key, value: true)
        let handler = Handler { message in
            isOnMainQueue.append(DispatchQueue.getSpecific(key: key) == true)
            log.append(message.msgid)
        }
        port.setDelegate(handler)
        for number in 0..<3 { #expect(port.send(number)) }
        addToMain(port, mode)
        await offThePool { for number in 3..<100 { port.send(number) } }
        #expect(await log.waitUntilCount(100) == Array(0..<100))
        #expect(isOnMainQueue.elements.allSatisfy { $0 })
        RunLoop.main.remove(port, forMode: mode)
        await drain()
        #expect(port.send(100))
        await drain()
        #expect(log.count == 100 && MainQueueService.shared.portCount == ports)
        addToMain(port, mode)
        #expect(await log.waitUntilCount(101).last == 100)
        port.invalidate()
        #expect(MainQueueService.shared.portCount == ports)
        await drain()
        DispatchQueue.main.setSpecific(key: key, value: nil)
    }

    @Test("D-M: a CFMessagePort on the main loop is served from the main queue, and a main actor's members are its")
    func messagePort() async throws {
        let ports = MainQueueService.shared.portCount
        let name = freshName("main")
        let box = await MainActor.run { Box(name) }
        let status = try await onNewThread { () -> Int32 in
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            var reply: Unmanaged<CFData>?
            let status = CFMessagePortSendRequest(
                remote, 1, nil, 60, 60, CFRunLoopMode.defaultMode.rawValue, &reply)
            reply?.release()
            CFMessagePortInvalidate(remote)
            return status
        }
        #expect(status == kCFMessagePortSuccess)
        PortBench.dropReplyWaits()
        await MainActor.run {
            #expect(box.count == 1)
            box.end()
        }
        #expect(MainQueueService.shared.portCount == ports)
        await drain()
    }

    /// A server that belongs to the main actor.
    @MainActor private final class Box {
        var count = 0
        private var port: CFMessagePort?

        init(_ name: String) {
            port = CFMessagePortCreateLocal(
                nil, name as CFString,
                { _, _, _, _ in
                    self.count += 1
                    return nil
                }, nil, nil)
            CFRunLoopAddSource(CFRunLoopGetMain(), CFMessagePortCreateRunLoopSource(nil, port, 0), .commonModes)
        }

        /// The callback retains this object until the port is gone.
        func end() {
            CFMessagePortInvalidate(port)
            port = nil
        }
    }

    @Test("D-M: a source that CoreFoundation's own function ends is forgotten; a port in a private mode is not served")
    func endedSource() async throws {
        let ports = MainQueueService.shared.portCount
        let (port, log) = (NSMachPort(), Recorder<UInt32>())
        let handler = Handler { log.append($0.msgid) }
        port.setDelegate(handler)
        addToMain(port, RunLoop.Mode("private"))
        #expect(MainQueueService.shared.portCount == ports + 1)
        #expect(port.send(1))
        await drain()
        #expect(log.count == 0)
        port.invalidate()
        #expect(MainQueueService.shared.portCount == ports)

        let local = CFMessagePortCreateLocal(
            nil, freshName("ended") as CFString,
            { _, id, _, _ in
                log.append(UInt32(id))
                return nil
            }, nil, nil)
        let source = CFMessagePortCreateRunLoopSource(nil, local, 0)
        CFRunLoopAddSource(CFRunLoopGetMain(), source, .commonModes)
        #expect(MainQueueService.shared.portCount == ports + 1)
        CFRunLoopSourceInvalidate(source)
        #expect(NSPortNameServer().port(forName: freshName("ended"))?.send(7) == true)
        await Task.detached {
            poll("the source is forgotten") { MainQueueService.shared.portCount == ports }
        }.value
        #expect(log.count == 0)
        CFMessagePortInvalidate(local)
        await drain()
    }

    /// What an invalidation callback, which captures nothing, waits for, and when it does.
    private static let (isEnding, mayEnd) = (Gate("the callback"), Gate("its end"))

    @Test("D-S7, D-M: a message at a port whose invalidation callback runs is no event of the main queue")
    func waitsWhileEnding() async throws {
        let name = freshName("ending")
        let local = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, nil, nil)
        let port = try #require(local)
        CFMessagePortSetInvalidationCallBack(port) { _, _ in
            MainQueueTests.isEnding.open()
            MainQueueTests.mayEnd.wait()
        }
        let right = try await PortNameServer.shared.lookUp(name)
        CFRunLoopAddSource(CFRunLoopGetMain(), CFMessagePortCreateRunLoopSource(nil, port, 0), .commonModes)
        let thread = runOnThread { CFMessagePortInvalidate(port) }
        _ = await offThePool { Self.isEnding.wait() }
        let events = MainQueueService.shared.eventCount
        try await right.send(MachMessage(id: 1), within: .seconds(60))
        for _ in 0..<100 { await drain() }
        #expect(MainQueueService.shared.eventCount == events)
        Self.mayEnd.open()
        try await thread.join()
        await drain()
    }

    private func run(_ scenario: String) async throws -> [Substring] {
        let result = try await ChildProcess(try builtProduct("mach-port-peer"), [scenario]).waitForExit()
        #expect(result.end == .exited(0) && result.errors == "", "\(result.output)\(result.errors)")
        return result.output.split(separator: "\n")
    }

    @Test("D-M: a program that runs its main loop has one run for each message, in order, and no main-queue event")
    func mainLoop() async throws {
        #expect(
            try await run("main-loop") == [
                "full true", "runs 100 messages 100", "blocks 50 messages 0", "wake-ups 0",
                "order true main true events 0", "ports 0",
            ])
    }

    @Test("D-M: no message is lost when a main thread that has run its loop calls dispatchMain()", arguments: 0..<5)
    func dispatchMain(round: Int) async throws {
        #expect(try await run("dispatch-main") == ["loop true events 0", "order true ports 0"])
    }

    @Test("D-M: a port that another thread has added before dispatchMain() is served then", arguments: 0..<5)
    func beforeDispatchMain(round: Int) async throws {
        #expect(try await run("before-dispatch-main") == ["loop true events 0", "order true ports 0"])
    }

    @Test("D-M: this package's loop on the main thread serves ports on the main loop, by turns with CoreFoundation's")
    func nativeLoop() async throws {
        let name = freshName("native-main")
        let result = try await ChildProcess(try builtProduct("cf-port-peer"), ["native-main", name]).waitForExit()
        #expect(result.end == .exited(0) && result.errors == "", "\(result.errors)")
        #expect(
            result.output.split(separator: "\n") == [
                "messages 300 order true main true", "objects 300 order true main true", "ports 0 events 0",
            ])
    }

    @Test("D-M: the current loop of code on the main queue is the main loop for ports, which leave it on any thread")
    func currentLoop() async throws {
        #expect(
            try await run("main-queue-loop") == [
                "main false contains true", "status 0", "status 0 order true", "left false",
                "ports 0 count 10",
            ])
    }
}
