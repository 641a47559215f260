// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer
import TestSupport
import Testing

@Suite("Documents: names on disk", .leakCheck)
struct NameDocumentTests {
    @Test("the record of Docs/WireFormat.md is the content of a name's file")
    func record() throws {
        let shown = try #require(try Document("Docs/WireFormat.md").blocks("record").first)
        let path = "/run/user/1000/swift-ports/sockets/0123456789abcdef0123456789abcdef.1"
        let record = try #require(NameRecord(owner: 4711, since: 86400, socketPath: path))
        #expect(record.contents == Array((shown + "\n").utf8))
        #expect(NameRecord(contents: Array((shown + "\n").utf8)) == record)
    }

    @Test("the file names of Docs/WireFormat.md are those of the names beside them")
    func fileNames() throws {
        let rows = try Document("Docs/WireFormat.md").tableRows
        let start = try #require(rows.firstIndex(of: ["Name", "File name"]))
        let shown = rows[(start + 1)...].prefix { $0.count == 2 && $0[0].hasPrefix("`") && $0[1].hasPrefix("`") }
        #expect(shown.count == 6)
        for row in shown where !row[0].contains(" times") {
            let name = try PortName(String(row[0].dropFirst().dropLast()))
            #expect("`\(name.fileName)`" == row[1])
            #expect(PortName(fileName: name.fileName) == name)
        }
        #expect(shown.last == ["`!` 128 times", "`%%` and `ISEh` 42 times and `ISE`"])
        let long = try PortName(String(repeating: "!", count: 128))
        #expect(long.fileName == "%%" + String(repeating: "ISEh", count: 42) + "ISE")
    }
}
