// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer
import TestSupport
import Testing

@Suite("NameRecord", .leakCheck) struct NameRecordTests {
    @Test("the record has the documented form")
    func form() throws {
        let record = try #require(NameRecord(owner: 4711, since: 86400, socketPath: "/run/x/é"))
        let text = "swift-port-name 1\nowner 4711\nsince 86400\nsocket 9 /run/x/é\nend\n"
        #expect(String(decoding: record.contents, as: UTF8.self) == text)
        #expect(NameRecord(contents: Array(text.utf8)) == record)
    }

    @Test("records survive writing and reading, at the ends of their ranges too")
    func roundTrip() throws {
        let paths = ["/", "/a", "/a\nend\n", "/end\nend\n ", "/" + String(repeating: "x", count: 4094), "/📮 %"]
        for path in paths {
            for owner: Int32 in [1, .max] {
                for since: Int64 in [0, 1, .max] {
                    let record = try #require(NameRecord(owner: owner, since: since, socketPath: path))
                    #expect(NameRecord(contents: record.contents) == record)
                }
            }
        }
    }

    @Test("a part out of range makes no record")
    func ranges() {
        #expect(NameRecord(owner: 0, since: 0, socketPath: "/a") == nil)
        #expect(NameRecord(owner: -1, since: 0, socketPath: "/a") == nil)
        #expect(NameRecord(owner: 1, since: -1, socketPath: "/a") == nil)
        for path in ["", "a", "/a\0", "/" + String(repeating: "x", count: 4095)] {
            #expect(NameRecord(owner: 1, since: 0, socketPath: path) == nil)
        }
    }

    @Test("no proper prefix of a record is a record, and none with bytes behind it")
    func torn() throws {
        let record = try #require(NameRecord(owner: 12, since: 34, socketPath: "/x\nend\n/y\nend\n"))
        let contents = record.contents
        for count in contents.indices { #expect(NameRecord(contents: Array(contents.prefix(count))) == nil) }
        #expect(NameRecord(contents: contents + [10]) == nil)
        #expect(NameRecord(contents: contents + contents) == nil)
    }

    @Test("a record with one flipped bit, or one byte more or less, is none or another valid one")
    func flips() throws {
        let contents = try #require(NameRecord(owner: 12, since: 34, socketPath: "/run/é")).contents
        for index in contents.indices {
            for bit in 0..<8 {
                var changed = contents
                changed[index] ^= 1 << bit
                if let other = NameRecord(contents: changed) { #expect(other.contents == changed) }
            }
            var shorter = contents
            shorter.remove(at: index)
            if let other = NameRecord(contents: shorter) { #expect(other.contents == shorter) }
            for byte in UInt8.min...UInt8.max {
                var longer = contents
                longer.insert(byte, at: index)
                if let other = NameRecord(contents: longer) { #expect(other.contents == longer) }
            }
        }
    }

    @Test(
        "foreign contents are no record",
        arguments: [
            "", "\n", "end\n", "swift-port-name 2\nowner 1\nsince 0\nsocket 2 /a\nend\n",
            "swift-port-name 1\nowner +1\nsince 0\nsocket 2 /a\nend\n",
            "swift-port-name 1\nowner 01\nsince 0\nsocket 2 /a\nend\n",
            "swift-port-name 1\nowner 4294967297\nsince 0\nsocket 2 /a\nend\n",
            "swift-port-name 1\nowner 1\nsince 99999999999999999999\nsocket 2 /a\nend\n",
            "swift-port-name 1\nowner 1\nsince 0\nsocket -2 /a\nend\n",
            "swift-port-name 1\nowner 1\nsince 0\nsocket 3 /a\nend\n",
            "swift-port-name 1\nowner 1\nsince 0\nsocket 9223372036854775807 /a\nend\n",
            "swift-port-name 1\nowner 1\nsince 0\nsocket 2 /a\r\nend\n",
            "swift-port-name 1\nowner \nsince 0\nsocket 2 /a\nend\n",
        ])
    func foreign(text: String) {
        #expect(NameRecord(contents: Array(text.utf8)) == nil)
    }

    @Test("random bytes never trap, and are a record only in its one form", .seeded)
    func random() {
        var generator = Seed.generator()
        let head = Array("swift-port-name 1\nowner 1\nsince 0\nsocket ".utf8)
        for _ in 0..<5_000 {
            let tail = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            for contents in [tail, head + tail] {
                if let record = NameRecord(contents: contents) { #expect(record.contents == contents) }
            }
        }
    }
}
