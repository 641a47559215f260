// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CoreFoundation
import Foundation
import FoundationPorts
import TestSupport
import Testing

/// The functions as C's header declares them, with C's types.
private enum CFace {
    static func string(_ text: String) -> CoreFoundation.CFString {
        unsafeBitCast(text as NSString, to: CoreFoundation.CFString.self)
    }

    static func remote(_ name: String?) -> CFMessagePort? {
        CoreFoundation.CFMessagePortCreateRemote(nil, name.map(string))
    }

    static func name(of port: CFMessagePort?) -> String? {
        CoreFoundation.CFMessagePortGetName(port).map { unsafeBitCast($0, to: NSString.self) as String }
    }

    static func setName(_ port: CFMessagePort?, _ name: String?) -> Bool {
        CoreFoundation.CFMessagePortSetName(port, name.map(string))
    }

    static func local(
        _ name: String, _ context: UnsafeMutablePointer<CFMessagePortContext>?, _ free: UnsafeMutablePointer<Bool>?
    ) -> CFMessagePort? {
        CoreFoundation.CFMessagePortCreateLocal(
            nil, string(name),
            { port, id, data, info in
                var text = "C \(id) \(data.map { CoreFoundation.CFDataGetLength($0) } ?? -1) \(info == nil)"
                let isSame = CFMessagePortGetTypeID() == CFGetTypeID(port)
                text += " \(isSame)"
                return text.withCString { bytes in
                    let start = UnsafeRawPointer(bytes).assumingMemoryBound(to: UInt8.self)
                    return CoreFoundation.CFDataCreate(nil, start, text.utf8.count).map { .passRetained($0) }
                }
            }, context, free)
    }
}

@Suite("CFMessagePort: C's face", .leakCheck(warmingUp: PortBench.warmUp), .serialized)
struct CFMessagePortCFaceTests {
    @Test("a port made in C and one looked up in Swift are one object, and each serves the other's requests")
    func oneObject() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            var free = true
            let made = CFace.local(name, nil, &free)
            #expect(made != nil && !free)
            var again = DarwinBoolean(false)
            let known = FoundationPorts.CFMessagePortCreateLocal(
                nil, name as NSString, { _, _, _, _ in nil }, nil, &again)
            #expect(known === made && again.boolValue)
            let source = CFMessagePortCreateRunLoopSource(nil, known, 0)
            FoundationPorts.CFRunLoopAddSource(CFRunLoopGetCurrent(), source, .defaultMode)
            let remote = CFace.remote(name)
            let same = FoundationPorts.CFMessagePortCreateRemote(nil, name as NSString)
            #expect(remote != nil && remote === same)
            #expect(ask(remote, 5, "abc") == Answer(0, "C 5 3 true true"))
            var reply: Unmanaged<CoreFoundation.CFData>?
            let status = CoreFoundation.CFMessagePortSendRequest(
                remote, 6, nil, 1, 60, CoreFoundation.kCFRunLoopDefaultMode, &reply)
            #expect(status == 0)
            let data = reply.map { unsafeBitCast($0.takeRetainedValue(), to: NSData.self) }
            #expect(text(data) == "C 6 0 true true")
            #expect(CFace.name(of: made) == name)
            CFMessagePortInvalidate(made)
            #expect(!CFMessagePortIsValid(remote))
        }
    }

    @Test("C's face sets shouldFreeInfo to true for a known and for a refused name, and takes a NUL and null")
    func shouldFree() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            var free = false
            let port = CFace.local(name, nil, &free)
            #expect(!free && CFace.local(name, nil, &free) === port && free)
            free = false
            #expect(CFace.local("a\0b", nil, &free) == nil && free)
            #expect(!CFace.setName(port, name) && CFace.setName(port, PortBench.name()))
            #expect(CFace.remote(nil) == nil && CFace.name(of: nil) == nil && !CFace.setName(nil, nil))
            let status = CoreFoundation.CFMessagePortSendRequest(nil, 0, nil, 0, 0, nil, nil)
            #expect(status == kCFMessagePortIsInvalid)
            CFMessagePortInvalidate(port)
        }
    }

    @Test("D-S13: during the wait the reply's source is on the caller's loop, in the mode, with the order -100")
    func replySource() async throws {
        try await onLoopThread {
            /// The orders of the loop's sources.
            @Sendable func orders() -> [String] {
                let text = CFCopyDescription(CFRunLoopGetCurrent()).map { unsafeBitCast($0, to: NSString.self) }
                let sources = (text as String?)?.matches(of: /<CFRunLoopSource [^>]*>\{[^}]*?order = (-?[0-9]+)/) ?? []
                return sources.map { String($0.1) }.sorted()
            }
            let port = try serve(PortBench.name()) { _, _, _, _ in reply(orders().joined(separator: " ")) }
            #expect(orders() == ["0"])
            #expect(ask(port, 1) == Answer(0, "-100 0"))
            #expect(orders() == ["0"])
            CFMessagePortInvalidate(port)
        }
    }

    @Test("a description names the port, its kind, and its end")
    func description() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let port = try #require(CFace.local(name, nil, nil))
            let remote = try #require(CFace.remote(name))
            func described(_ port: CFMessagePort) -> String {
                CFCopyDescription(port).map { unsafeBitCast($0, to: NSString.self) as String } ?? "nil"
            }
            #expect(described(port).contains("local \(name)") && described(remote).contains("remote \(name)"))
            CFMessagePortInvalidate(port)
            #expect(described(port).contains("invalid"))
        }
    }
}
