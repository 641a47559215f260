// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// What the library relies on, and nobody promises. When one of these fails with a newer toolchain, the library must be
// changed.

import CoreFoundation
import Foundation
import FoundationPorts
import MessagePort
import Synchronization
import TestSupport
import Testing

/// The exact version of the toolchain whose Foundation is loaded, as its compiler says; nil when it has none.
private func toolchainVersion() throws -> String? {
    let compiler = try ChildProcess(Toolchain.found().programs + "/swiftc", ["--version"])
    return try compiler.waitForExit().output.firstMatch(of: /Swift version [^\n]*/).map { String($0.0) }
}

/// The toolchain, and the library of it that the tests have loaded.
private let toolchain: String = {
    // Where the toolchain is not installed, at least the language's version is known.
    #if compiler(>=6.4)
    let compiler = "Swift 6.4 or newer"
    #elseif compiler(>=6.3)
    let compiler = "Swift 6.3"
    #else
    let compiler = "Swift older than 6.3"
    #endif
    let library = (try? Toolchain.found()).map { $0.libraries + "/libFoundation.so" }
    let version = (try? toolchainVersion()) ?? compiler
    return "\(version), \(library ?? "Foundation linked statically")"
}()

@Suite("What toolchains do and nobody promises", .machPorts, .serialized) struct ToolchainTests {
    private func makePort(_ name: String) -> CFMessagePort? {
        CFMessagePortCreateLocal(nil, freshName(name) as NSString, { _, _, _, _ in nil }, nil, nil)
    }

    @Test("T7: the messages name the toolchain's exact version, and the library that is loaded")
    func version() throws {
        #expect(toolchain.contains("libFoundation.so"), "\(toolchain)")
        let version = try #require(try toolchainVersion())
        #expect(toolchain.contains(version), "\(toolchain)")
    }

    @Test("T7: an object of a class that was registered with CoreFoundation's runtime is one of its objects")
    func runtimeClass() throws {
        let (one, other) = (try #require(makePort("one")), try #require(makePort("other")))
        let type = CFMessagePortGetTypeID()
        #expect(CFGetTypeID(one) == type && CFGetTypeID(other) == type, "\(toolchain)")
        let name = try #require(CFCopyTypeIDDescription(type))
        #expect(unsafeBitCast(name, to: NSString.self) == "CFMessagePort", "\(toolchain)")
        #expect(CFEqual(one, one) && !CFEqual(one, other) && CFHash(one) == CFHash(one), "\(toolchain)")
        let text = try #require(CFCopyDescription(one))
        #expect(unsafeBitCast(text, to: NSString.self).contains(freshName("one")), "\(toolchain)")
        #expect(Set([one, other, one]).count == 2, "\(toolchain)")
        CFMessagePortInvalidate(one)
        CFMessagePortInvalidate(other)
    }

    @Test("T7: Swift's reference count is the object's: a weak variable becomes nil, and the object is finalized")
    func runtimeReferences() throws {
        nonisolated(unsafe) weak var weakPort: CFMessagePort?
        do {
            let port = try #require(makePort("weak"))
            weakPort = port
            #expect(weakPort === port, "\(toolchain)")
        }
        #expect(weakPort == nil, "\(toolchain)")
        // Finalized: its name is free.
        #expect(CFMessagePortCreateRemote(nil, freshName("weak") as NSString) == nil, "\(toolchain)")
    }

    @Test("T7: a RunLoop has CoreFoundation's loop of its thread in the property _cfRunLoopStorage")
    func runLoopStorage() async throws {
        let version = toolchain
        try await onNewThread {
            #expect(RunLoop.current.reflectedLoop() == CFRunLoopGetCurrent(), "\(version)")
            #expect(RunLoop.main.reflectedLoop() == CFRunLoopGetMain(), "\(version)")
            #expect(RunLoop.current.reflectedLoop(storedAs: "gone") == nil)
            nonisolated(unsafe) let loop = RunLoop.current
            let other = runOnThread { loop.getCFRunLoop() }
            let found = try other.join()
            #expect(found == CFRunLoopGetCurrent(), "\(version)")
            #expect(RunLoop.main.getCFRunLoop() == CFRunLoopGetMain() && loop.getCFRunLoop() == CFRunLoopGetCurrent())
        }
    }

    @Test("T7: CFData made in C is an NSData, an NSData is given to C as CFData, and the same holds for strings")
    func tollFree() throws {
        let bytes: [UInt8] = [1, 2, 3]
        let created = CoreFoundation.CFDataCreate(nil, bytes, 3)
        let made = try #require(created)
        let data = unsafeBitCast(made, to: NSData.self)
        #expect(data.length == 3 && (data as Data) == Data(bytes) && type(of: data) == NSData.self, "\(toolchain)")
        for data in [NSData(data: Data(bytes)), NSMutableData(data: Data(bytes)), Data(bytes) as NSData] {
            let cfData = unsafeBitCast(data, to: CoreFoundation.CFData.self)
            let (length, start) = (CoreFoundation.CFDataGetLength(cfData), CoreFoundation.CFDataGetBytePtr(cfData))
            #expect(length == 3 && start?[2] == 3, "\(toolchain)")
        }
        let text = unsafeBitCast("text" as NSString, to: CoreFoundation.CFString.self)
        #expect(CFStringGetLength(text) == 4, "\(toolchain)")
        let length = FoundationPorts.CFDataGetLength(FoundationPorts.CFDataCreate(nil, bytes, 3))
        #expect(length == 3, "\(toolchain)")
    }

    @Test("T7: CoreFoundation compares the common modes by the constant's address, and the layer gives it the constant")
    func commonModes() async throws {
        let version = toolchain
        try await onNewThread {
            let timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent() + 1e6, 0, 0, 0) { _ in }
            let copy = "kCFRunLoopCommon" + "Modes"
            FoundationPorts.CFRunLoopAddTimer(
                CFRunLoopGetCurrent(), timer, FoundationPorts.CFRunLoopMode(copy as NSString))
            let isInDefault = FoundationPorts.CFRunLoopContainsTimer(CFRunLoopGetCurrent(), timer, .defaultMode)
            #expect(isInDefault, "\(version)")
            CFRunLoopTimerInvalidate(timer)
        }
    }

    @Test("T11: a descriptor of epoll inside of a run loop's epoll set wakes the loop that waits")
    func nestedEpoll() async throws {
        let version = toolchain
        try await onNewThread {
            let outer = MachPort()
            let descriptor = try outer.doorbell().descriptor
            let path = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)")
            #expect(path == "anon_inode:[eventpoll]")
            let (port, numbers) = (NSMachPort(), Numbers())
            port.setDelegate(numbers)
            let waiting = Gate("the loop that is about to wait")
            let beforeWaiting = CoreFoundation.CFRunLoopActivity.beforeWaiting.rawValue
            let observer = CFRunLoopObserverCreateWithHandler(nil, beforeWaiting, false, 0) { _, _ in waiting.open() }
            FoundationPorts.CFRunLoopAddObserver(CFRunLoopGetCurrent(), observer, .defaultMode)
            RunLoop.current.add(port, forMode: .default)
            let sender = runOnThread {
                waiting.wait()
                return port.send(1)
            }
            #expect(RunLoop.current.run(mode: .default, before: .watchdog))
            #expect(numbers.all == [1], "\(version)")
            let wasSent: Bool = try sender.join()
            #expect(wasSent)
            port.invalidate()
            outer.invalidate()
        }
    }

    @Test("T2: under an async main function other threads serve the main queue, and the main loop is in no mode")
    func mainQueue() {
        let mode = CoreFoundation.CFRunLoopCopyCurrentMode(CFRunLoopGetMain())
        #expect(MainQueueService.shared.hasMainQueue && mode == nil, "\(toolchain)")
    }

    @Test("T7: a file that imports Foundation and FoundationPorts has the run loop's functions, and no others")
    func scopedNames() async throws {
        let text = try await onNewThread { scopedReexports() }
        #expect(text == "finished 7")
    }
}
