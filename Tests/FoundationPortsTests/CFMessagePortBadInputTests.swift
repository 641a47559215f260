// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import TestSupport
import Testing

@Suite("CFMessagePort: bad input", .leakCheck(settles: true, warmingUp: PortBench.warmUp), .serialized)
struct CFMessagePortBadInputTests {
    @Test(
        "D-S11: data above 0x5FFFFFF8 bytes gives -4, also for an invalid port, and its bytes are not read",
        arguments: [0x5FFF_FFF9, 0x6000_0000, 0x6000_0001])
    func tooLarge(length: Int) async throws {
        try await onLoopThread {
            let pages = try #require(mmap(nil, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))
            try #require(pages != MAP_FAILED)
            defer { munmap(pages, length) }
            let data = NSData(bytesNoCopy: pages, length: length, freeWhenDone: false)
            let port = try serve(PortBench.name()) { _, _, _, _ in nil }
            let mode = CFRunLoopMode.defaultMode.rawValue
            for reply in [nil, mode] {
                #expect(CFMessagePortSendRequest(port, 1, data, 1, 1, reply, nil) == kCFMessagePortTransportError)
            }
            CFMessagePortInvalidate(port)
            #expect(CFMessagePortSendRequest(port, 1, data, 1, 1, mode, nil) == kCFMessagePortTransportError)
        }
    }

    @Test("D-S12: a reply above the limit is replaced by an empty one")
    func replyTooLarge() async throws {
        try await onLoopThread {
            let length = 0x6000_0001
            let pages = try #require(mmap(nil, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))
            defer { munmap(pages, length) }
            let address = UInt(bitPattern: pages)
            let port = try serve(PortBench.name()) { _, _, _, _ in
                let pages = UnsafeMutableRawPointer(bitPattern: address)!
                return .passRetained(NSData(bytesNoCopy: pages, length: length, freeWhenDone: false))
            }
            #expect(ask(port, 1) == Answer(0, ""))
            CFMessagePortInvalidate(port)
        }
    }

    @Test("D-S18: nil in the place of a port gives CoreFoundation's value for failure, or does nothing")
    func noPort() async throws {
        try await onLoopThread {
            #expect(CFMessagePortGetName(nil) == nil)
            #expect(!CFMessagePortSetName(nil, "x" as CFString))
            #expect(!CFMessagePortIsRemote(nil) && !CFMessagePortIsValid(nil))
            var context = CFMessagePortContext()
            CFMessagePortGetContext(nil, &context)
            #expect(context.info == nil)
            CFMessagePortInvalidate(nil)
            CFMessagePortSetInvalidationCallBack(nil) { _, _ in }
            #expect(CFMessagePortGetInvalidationCallBack(nil) == nil)
            #expect(CFMessagePortCreateRunLoopSource(nil, nil, 0) == nil)
            CFMessagePortSetDispatchQueue(nil, nil)
            CFMessagePortSetDispatchQueue(nil, DispatchQueue.main)
            #expect(ask(nil, 1) == Answer(kCFMessagePortIsInvalid))
            #expect(CFMessagePortSendRequest(nil, 1, nil, 0, 0, nil, nil) == kCFMessagePortIsInvalid)
            #expect(CFMessagePortCreateRemote(nil, nil) == nil)
        }
    }

    @Test("D-S18: nil for other arguments is harmless")
    func noArguments() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let port = try #require(CFMessagePortCreateLocal(nil, name as CFString, nil, nil, nil))
            #expect(!CFMessagePortSetName(port, nil))
            CFMessagePortGetContext(port, nil)
            CFMessagePortSetInvalidationCallBack(port, nil)
            #expect(CFMessagePortGetInvalidationCallBack(port) == nil)
            let source = CFMessagePortCreateRunLoopSource(nil, port, 0)
            let loop = CFRunLoopGetCurrent()
            CFRunLoopAddSource(loop, nil, .defaultMode)
            CFRunLoopAddSource(nil, source, .defaultMode)
            CFRunLoopAddSource(loop, source, nil)
            CFRunLoopRemoveSource(loop, source, nil)
            #expect(!CFRunLoopContainsSource(loop, nil, .defaultMode) && !CFRunLoopContainsSource(loop, source, nil))
            CFRunLoopAddTimer(loop, nil, .defaultMode)
            CFRunLoopAddObserver(loop, nil, .defaultMode)
            CFRunLoopAddCommonMode(loop, nil)
            CFRunLoopPerformBlock(loop, nil, nil)
            #expect(CFRunLoopRunInMode(nil, 0, true) == .finished)
            #expect(CFRunLoopCopyCurrentMode(nil) == nil && CFRunLoopCopyAllModes(nil) == nil)
            #expect(CFDataGetLength(nil) == 0 && CFDataGetBytePtr(nil) == nil)
            CFMessagePortInvalidate(port)
        }
    }

    @Test("D-S1 to D-S12: each function takes an invalid port, local or remote")
    func invalidPorts() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let local = try #require(CFMessagePortCreateLocal(nil, name as CFString, nil, nil, nil))
            let remote = try #require(CFMessagePortCreateRemote(nil, name as CFString))
            CFMessagePortInvalidate(local)
            CFMessagePortInvalidate(remote)
            for port in [local, remote] {
                #expect(!CFMessagePortIsValid(port) && CFMessagePortIsRemote(port) == (port == remote))
                #expect(CFMessagePortGetName(port) as String? == name)
                #expect(!CFMessagePortSetName(port, PortBench.name() as CFString))
                var context = CFMessagePortContext()
                CFMessagePortGetContext(port, &context)
                #expect(context.info == nil)
                CFMessagePortInvalidate(port)
                #expect(CFMessagePortGetInvalidationCallBack(port) == nil)
                #expect(CFMessagePortCreateRunLoopSource(nil, port, 0) == nil)
                CFMessagePortSetDispatchQueue(port, DispatchQueue.main)
                CFMessagePortSetDispatchQueue(port, nil)
                #expect(ask(port, 1) == Answer(-3))
                #expect(CFGetTypeID(port) == CFMessagePortGetTypeID())
                #expect(CFEqual(port, port) && CFHash(port) == CFHash(port))
            }
            #expect(!CFEqual(local, remote) && local != remote && Set([local, remote, local]).count == 2)
        }
    }

    @Test("D-S18: without descriptors a port is nil, a source is nil, a request is -4; afterwards all is as before")
    func noDescriptors() async throws {
        try await onLoopThread {
            let (name, other) = (PortBench.name(), PortBench.name())
            let served = try serve(name) { _, _, _, _ in reply("x") }
            let port = try #require(CFMessagePortCreateLocal(nil, other as CFString, nil, nil, nil))
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            CFRunLoopRunInMode(.defaultMode, 0, true)
            PortBench.dropReplyWaits()
            for _ in 0..<3 {
                withDescriptorLimit(0) {
                    #expect(CFMessagePortCreateLocal(nil, PortBench.name() as CFString, nil, nil, nil) == nil)
                    #expect(CFMessagePortCreateRunLoopSource(nil, port, 0) == nil)
                    CFMessagePortSetDispatchQueue(port, DispatchQueue.global())
                    #expect(!CFMessagePortSetName(port, PortBench.name() as CFString))
                    #expect(ask(remote, 1) == Answer(kCFMessagePortTransportError))
                }
            }
            #expect(ask(remote, 1) == Answer(0, "x"))
            let source = CFMessagePortCreateRunLoopSource(nil, port, 0)
            #expect(source != nil)
            CFMessagePortInvalidate(served)
            CFMessagePortInvalidate(port)
        }
    }

    @Test("D-S11: ids of all kinds arrive as they were sent", arguments: [0, -1, Int32.min, .max, 71])
    func ids(id: Int32) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let port = try serve(name) { _, id, _, _ in reply("\(id)") }
            #expect(ask(CFMessagePortCreateRemote(nil, name as CFString), id) == Answer(0, "\(id)"))
            CFMessagePortInvalidate(port)
            let peer = try PortBench.peer("serve", name)
            if !(1...13).contains(id) {
                #expect(ask(CFMessagePortCreateRemote(nil, name as CFString), id) == Answer(0, "\(id) 0"))
            }
            try peer.waitForExit()
        }
    }
}
