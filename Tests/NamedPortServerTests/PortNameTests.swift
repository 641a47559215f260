// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort
import NamedPortServer
import TestSupport
import Testing

@Suite("PortName", .leakCheck) struct PortNameTests {
    @Test("a name has 1 to 128 bytes of UTF-8")
    func length() throws {
        #expect(throws: PortError(.nameEmpty)) { try PortName("") }
        #expect(throws: Never.self) { try PortName(String(repeating: "é", count: 64)) }
        let error = PortError(.nameTooLong, subject: .size(129, limit: 128))
        #expect(throws: error) { try PortName(String(repeating: "x", count: 129)) }
        #expect(throws: error) { try PortName("x" + String(repeating: "é", count: 64)) }
    }

    @Test("a name with a NUL anywhere is refused", arguments: ["\0", "a\0", "\0a", "a\0b"])
    func nul(string: String) {
        #expect(throws: PortError(.nameHasNUL, subject: .name(string))) { try PortName(string) }
    }

    @Test(
        "every other byte is allowed", arguments: ["/", ".", "..", "../../etc", "a\nb", "%", "%%", " ", "📮", "\u{7F}"])
    func allowed(string: String) throws {
        let name = try PortName(string)
        #expect(name.string == string)
        #expect(PortName(fileName: name.fileName) == name)
    }

    @Test("names that differ in their bytes are different, even when the letters are the same")
    func bytes() throws {
        let (composed, decomposed) = (try PortName("caf\u{E9}"), try PortName("cafe\u{301}"))
        #expect(composed.string == decomposed.string)
        #expect(composed != decomposed)
        #expect(Set([composed, decomposed, try PortName("caf\u{E9}")]).count == 2)
        #expect(composed.fileName != decomposed.fileName)
        #expect(PortName(fileName: composed.fileName) == composed)
        #expect(PortName(fileName: decomposed.fileName) == decomposed)
    }
}
