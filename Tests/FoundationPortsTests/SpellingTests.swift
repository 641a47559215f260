// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import SpellingAliases
import SpellingSwift5
import TestSupport
import Testing

@Suite("Apple's spelling compiles unchanged", .machPorts, .serialized) struct SpellingTests {
    private static let expected = [
        "free false", "context true", "42:hello", "one way true", "3 bytes", "name true", "mode kCFRunLoopDefaultMode",
        "remote true false", "ports 2 equal true hash true", "invalidated false", "valid false", "own true true true",
        "nested 1 x", "static 5", "lazy 5 false",
    ]

    @Test("a client in Swift 6 compiles and runs")
    func swift6() async throws {
        let results = try await onNewThread { () -> [String] in
            defer { PortBench.dropReplyWaits() }
            return FoundationPortsTests.SpellingClient(name: freshName("six")).run()
        }
        #expect(results == Self.expected)
    }

    @Test("the same client in Swift 5 compiles and runs")
    func swift5() async throws {
        let results = try await onNewThread { () -> [String] in
            defer { PortBench.dropReplyWaits() }
            return SpellingSwift5.SpellingClient(name: freshName("five")).run()
        }
        #expect(results == Self.expected)
    }

    @Test("a literal in a method of the main actor is a callback")
    func mainActor() async {
        #expect(await FoundationPortsTests.SpellingClient.runController(freshName("actor.six")))
        #expect(await SpellingSwift5.SpellingClient.runController(freshName("actor.five")))
        await withCheckedContinuation { done in DispatchQueue.main.async { done.resume() } }
    }

    @Test("both clients have the same source")
    func sameSource() throws {
        let name = "SpellingClient.swift"
        let texts = try ["FoundationPortsTests", "SpellingSwift5"].map { try Document("Tests/\($0)/\(name)").text }
        #expect(texts[0] == texts[1])
    }

    @Test("a client that also imports CoreFoundation compiles and runs with four typealiases")
    func fourAliases() async throws {
        let result = try await onNewThread { () -> String in
            defer { PortBench.dropReplyWaits() }
            return AliasClient.run(freshName("aliases"))
        }
        #expect(result == "3 abc true")
    }

    @Test("in such a client, calls that fit CoreFoundation's functions, too, are not ambiguous")
    func bothFunctions() async throws {
        let results = try await onNewThread { AliasClient.runInBoth(freshName("both")) }
        #expect(
            results == [
                "true true", "true true", "false", "true true", "common", "one of several", "any object", "true",
                "true true", "0", "2 2 true", "0",
            ])
    }

    @Test("C's Boolean is one byte, and a mode is equal to another one of the same name")
    func values() {
        #expect(MemoryLayout<DarwinBoolean>.size == 1)
        let yes: DarwinBoolean = true
        #expect(yes.boolValue && yes == DarwinBoolean(true) && yes != false && "\(yes)" == "true")
        #expect(CFRunLoopMode("a" as CFString) == CFRunLoopMode(rawValue: "a" as NSString))
        #expect(CFRunLoopMode.defaultMode != CFRunLoopMode.commonModes)
        #expect(autoreleasepool { 7 } == 7 && KERN_SUCCESS == 0)
    }
}
