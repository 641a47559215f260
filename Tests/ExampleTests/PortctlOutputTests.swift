// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer
import TestSupport
import Testing

@testable import portctl

@Suite("portctl: what is written")
struct PortctlOutputTests {
    private let table = Table(
        columns: [
            .init(title: "NAME", narrowest: 6), .init(title: "OWNER", isRight: true, expendability: 1),
            .init(title: "COMMAND", narrowest: 4, expendability: 2),
        ],
        rows: [["org.example.echo", "12", "server --quiet"], ["b", "4711", "x"]])

    @Test("columns are as wide as their cells, and end without spaces")
    func whole() {
        #expect(
            table.lines() == [
                "NAME              OWNER  COMMAND", "org.example.echo     12  server --quiet",
                "b                  4711  x",
            ])
    }

    @Test("where there is little room columns become narrower, then the least important is left out", arguments: 8...45)
    func narrow(width: Int) {
        let lines = table.lines(width: width)
        #expect(lines.allSatisfy { $0.cells <= max(width, 6) })
        #expect(lines[0].contains("OWNER") == (width >= 23))
        #expect(lines[0].contains("COM") == (width >= 29))
        #expect(lines[0].hasPrefix("NAME"))
    }

    @Test("characters of East Asia occupy two cells")
    func wide() {
        #expect("\u{540D}\u{524D}".cells == 4 && "Gr\u{FC}\u{DF}e".cells == 5)
        #expect("\u{540D}\u{524D}".cut(to: 3) == "\u{540D}\u{2026}")
        #expect("abc".cut(to: 3) == "abc" && "abcd".cut(to: 3) == "ab\u{2026}" && "abc".cut(to: 0) == "")
    }

    @Test("a reply is text when it is text, and digits otherwise; elsewhere than on a terminal it is as it is")
    func replies() {
        func shown(_ bytes: [UInt8], asHex: Bool = false, asItIs: Bool = false, onTerminal: Bool = true) -> String {
            String(
                decoding: Invocation.shown(bytes, asHex: asHex, asItIs: asItIs, onTerminal: onTerminal), as: UTF8.self)
        }
        let hello = Array("hello".utf8)
        #expect(shown(hello) == "hello\n" && shown(hello + [10]) == "hello\n" && shown([]) == "")
        #expect(shown(hello, asItIs: true) == "hello" && shown(hello, onTerminal: false) == "hello")
        let digits = "00000000  1b 5b 32 4a                                      .[2J\n"
        #expect(
            shown([0x1B, 0x5B, 0x32, 0x4A]) == digits && shown([0x1B, 0x5B, 0x32, 0x4A], asItIs: true) == "\u{1B}[2J")
        #expect(shown([0xFF]).hasPrefix("00000000  ff "))
    }

    @Test("a row of the list shows what is known, and - for what is not")
    func row() {
        var statistics = PortStatistics()
        (statistics.messageCount, statistics.byteCount, statistics.queueCount, statistics.queueLimit) = (3, 2048, 4, 4)
        var row = NameListing(
            name: "a\nb", owner: 7, command: nil, since: "2026-11-21T14:37:10Z", age: .seconds(61),
            answer: .answered(statistics))
        #expect(row.cells == ["a\\nb", "7", "-", "0", "4/4", "3", "2K", "0"])
        #expect(row.style == .alarming)
        statistics.waits = WaitCounts(sleeps: 3, spinsThatPaid: 2, spinsThatDidNot: 1)
        row.answer = .answered(statistics)
        #expect(row.facts.last?.1 == "3 sleeps, 2 spins that paid, 1 that did not")
        let others: [(StatisticsReply?, [String], Style)] = [
            (.busy, ["-", "busy", "-", "-", "-"], .suspicious), (.silent, ["-", "-", "-", "-", "-"], .silent),
            (nil, ["-", "waiting", "-", "-", "-"], .silent),
        ]
        for (answer, cells, style) in others {
            row.answer = answer
            #expect(row.cells.suffix(5) == cells[...] && row.style == style)
            #expect(row.facts.last?.0 == "State")
        }
        #expect(row.facts[1].0 == "Held by" && row.facts[3].1.hasSuffix(", 1m 1s ago"))
        #expect(NameListing.command([]) == nil)
        #expect(NameListing.command(Array("/usr/bin/tool\0--x\0two words\0".utf8)) == "tool --x two words")
    }

    @Test("a screen counts the lines that do not fit, and clears what was there before")
    func screen() {
        let lines = (1...5).map { (text: "line \($0)", style: Style.plain) }
        let text = Screen.text(lines, height: 4, usesColour: true, isTerminal: true)
        #expect(text.hasPrefix("\u{1B}[H") && text.hasSuffix("\u{1B}[J"))
        #expect(text.contains("line 3\u{1B}[K") && !text.contains("line 4") && text.contains("2 more"))
        #expect(
            Screen.text(lines, height: nil, usesColour: false, isTerminal: false)
                == "line 1\nline 2\nline 3\nline 4\nline 5\n\n")
    }

    @Test("progress shows how much of how much")
    func progress() {
        #expect(Progress.line(1 << 20, of: 4 << 20) == "sent 1M of 4M, 25 %")
        #expect(Progress.line(5 << 20, of: 4 << 20) == "sent 4M of 4M, 100 %")
    }

    @Test("a command that is started too often is given up; one that is started now and then is not")
    func startLimit() {
        var limit = StartLimit()
        let start = MonotonicInstant(nanoseconds: 1_000_000_000_000)
        let spaced = (0..<20).map { limit.mayStart(at: start.advanced(by: .seconds($0 * 3))) }
        #expect(spaced.allSatisfy { $0 })
        limit = StartLimit()
        let atOnce = (0..<6).map { _ in limit.mayStart(at: start) }
        #expect(atOnce == [true, true, true, true, true, false])
    }
}
