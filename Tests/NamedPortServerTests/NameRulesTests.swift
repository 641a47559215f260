// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import NamedPortServer
import TestSupport
import Testing

@Suite("NameRules") struct NameRulesTests {
    private func allow(_ user: UInt32, _ name: String, by rules: String) throws -> Bool {
        try #require(NameRules(contents: Array(rules.utf8))).allow(user, PortName(name))
    }

    @Test("the first rule that fits a name decides, and without one no user may have it")
    func first() throws {
        let rules = "a.b 1\na.* 2 3\n* *\n"
        #expect(try allow(1, "a.b", by: rules) && !allow(2, "a.b", by: rules))
        #expect(try allow(2, "a.c", by: rules) && allow(3, "a.", by: rules) && !allow(1, "a.c", by: rules))
        #expect(try allow(9, "a", by: rules) && allow(9, "b", by: rules))
        #expect(try !allow(1, "b", by: "a.b 1\n") && !allow(1, "a", by: ""))
    }

    @Test("a rule is for the file name of a name, byte by byte")
    func fileNames() throws {
        #expect(try allow(1, "a b", by: "a%20b 1") && allow(1, "a*", by: "a%2A 1") && allow(1, ".a", by: "%2E* 1"))
        // Letters that look alike are other names.
        #expect(try allow(1, "\u{e9}", by: "%C3%A9 1") && !allow(1, "e\u{301}", by: "%C3%A9 1"))
        #expect(try !allow(1, "ab", by: "a 1") && !allow(1, "a", by: "ab* 1"))
    }

    @Test("blanks, empty lines and comments have no meaning")
    func blanks() throws {
        #expect(try allow(1, "a", by: "\n\n# a 2\n  \t\n \ta \t 1\t\n") && !allow(2, "a", by: "#a 2\na 1"))
    }

    @Test(
        "a line that is no rule makes all of them none",
        arguments: [
            "a", "*", "a*b 1", "** 1", "a one", "a -1", "a 4294967296", "a 1,2", "a * 1", "a 1 *", "a 1\r\n", "\0",
        ])
    func malformed(line: String) {
        #expect(NameRules(contents: Array("b 1\n\(line)\nc 1\n".utf8)) == nil)
    }

    @Test("any bytes are read or refused", .seeded)
    func anyBytes() {
        var generator = Seed.generator()
        let alphabet = Array("a* \t\n#19%.\r\u{e9}".utf8) + [0, 255]
        for _ in 0..<5000 {
            let count = Int.random(in: 0..<40, using: &generator)
            let bytes = (0..<count).map { _ in alphabet.randomElement(using: &generator) ?? 0 }
            _ = NameRules(contents: bytes)
        }
    }
}
