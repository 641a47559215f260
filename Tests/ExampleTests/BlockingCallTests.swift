// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import TestSupport
import Testing

/// A public call that blocks its thread does not compile in a task, and has a form that does.
@Suite("Calls that block", .leakCheck)
struct BlockingCallTests {
    private static let page = "Docs/Tasks.md"

    /// The rows of the page's table with this number of columns.
    private static func rows(columns: Int) throws -> [[String]] {
        try Document(page).tableRows.filter { $0.count == columns && $0[0].hasPrefix("`") }
    }

    private static func calls() throws -> [PublicCall] { try allCalls.get() }

    private static let allCalls = Result {
        try Document.sources().filter { source in
            source.path.hasSuffix(".swift")
                && ["RunLoopCore", "MessagePort", "NamedPortServer"].contains {
                    source.path.hasPrefix("Sources/\($0)/")
                }
        }.flatMap { PublicCall.all(in: $0.text) }
    }

    @Test("a call whose comment says that it waits is noasync, or the page says why it may be called in a task")
    func comments() throws {
        let waiting = try Self.calls().filter { !$0.isAsync && $0.saysThatItWaits }
        #expect(waiting.count > 25)
        let exempt = Set(try Self.rows(columns: 2).map { unquoted($0[0]) })
        let missing = waiting.filter { !$0.blocks && !exempt.contains($0.name) }.map(\.name)
        #expect(missing == [], "make it noasync, and add an asynchronous form")
        #expect(
            exempt.subtracting(waiting.filter { !$0.blocks }.map(\.name)) == [], "an exception that is not needed goes")
    }

    @Test("the page has every call that is noasync because it blocks")
    func table() throws {
        let rows = try Self.rows(columns: 3)
        let names = rows.map { unquoted($0[0]) }
        #expect(names == names.sorted())
        #expect(Set(names) == Set(try Self.calls().filter(\.blocks).map(\.name)))
    }

    @Test("what the page names for tasks is there, and suspends; and each form that suspends is on the page")
    func forms() throws {
        let calls = try Self.calls()
        let suspending = Set(calls.filter(\.isAsync).map(\.name))
        let sources = try Document.sources().map(\.text).joined()
        var named: Set<String> = []
        for row in try Self.rows(columns: 3) {
            let form = row[2].hasPrefix("none") ? "" : unquoted(row[2])
            if suspending.contains(form) {
                named.insert(form)
            } else {
                // A property, or another way, which the row describes.
                for match in row[2].matches(of: /`([A-Za-z]+)\.([a-z][A-Za-z]*)`/) {
                    #expect(sources.contains("public var \(match.2):"), "\(match.0)")
                }
                #expect(row[2].hasPrefix("none: ") || row[2].hasSuffix(", a sequence"), "\(row)")
            }
        }
        let blocking = Set(calls.filter(\.blocks).map(\.baseName))
        #expect(
            calls.filter { $0.isAsync && blocking.contains($0.baseName) && !named.contains($0.name) }.map(\.name) == [])
    }

    @Test("calls are found with their types, labels, attributes and comments")
    func search() {
        let calls = PublicCall.all(
            in: """
                extension Outer {
                    /// Waits until it is there.
                    ///
                    /// - Parameter limit: how long.
                    @available(*, noasync, message: "It blocks the thread.")
                    @discardableResult
                    public func wait<A: B>(
                        _ first: (Int, Int), for second: [Int: Int] = [:], within limit: Duration
                    ) throws(E) -> Bool {
                    }

                    /// Says no.
                    nonisolated(nonsending) public convenience init(to there: Int) async {
                    }

                    public final class Inner: Sendable {
                        /// Does nothing.
                        public func leave() {
                        }
                    }

                    func unknown() {
                    }
                }
                """)
        #expect(calls.map(\.name) == ["Outer.wait(_:for:within:)", "Outer.init(to:)", "Inner.leave()"])
        #expect(calls.map(\.blocks) == [true, false, false])
        #expect(calls.map(\.isAsync) == [false, true, false])
        #expect(calls.map(\.saysThatItWaits) == [true, false, false])
    }

    @Test(
        "a comment that says that its call waits is known from one that says what others do",
        arguments: [
            ("It does this. Waits until the end.", true), ("- Parameter limit: the longest time to wait.", true),
            ("- limit: how long to wait for room.", true), ("It blocks the thread, and runs no loop.", true),
            ("Sends a message, waiting while the queue is full.", true), ("Ends it, and waits until it is gone.", true),
            ("Does not wait for it to appear.", false), ("Never waits for a requester.", false),
            ("A requester that waits for a reply is notified.", false), ("how many messages may wait", false),
            ("- delay: how long to wait at least", false), ("Suspends the task, and blocks no thread.", false),
        ])
    func words(comment: String, waits: Bool) {
        #expect(PublicCall(name: "A.b()", comment: comment, attributes: "", isAsync: false).saysThatItWaits == waits)
    }

    private func unquoted(_ cell: String) -> String { Self.unquoted(cell) }
    private static func unquoted(_ cell: String) -> String { cell.replacing("`", with: "") }
}
