// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import TestSupport
import Testing

@testable import portctl

@Suite("portctl: the command line")
struct PortctlLineTests {
    @Test("options may be anywhere, with a space or an equals sign, long or short")
    func options() throws {
        let lines = [
            ["request", "x", "-7", "text", "--timeout", "1.5s", "--hex"],
            ["--timeout=1.5s", "request", "-x", "x", "-7", "text"],
            ["-t", "1.5s", "request", "x", "-7", "--hex", "--", "text"],
            ["request", "-xt1.5s", "x", "-7", "text"], ["request", "x", "-7", "-xt", "1.5s", "text"],
            ["request", "x", "-7", "-xt=1.5s", "text"],
        ]
        for line in lines {
            let invocation = try Invocation(line)
            #expect(invocation.command == .request && invocation.name == "x" && invocation.id == -7)
            #expect(invocation.arguments["DATA"] == "text" && invocation.has("--hex"))
            #expect(invocation.duration("--timeout") == .milliseconds(1500))
            #expect(invocation.duration("--send-timeout") == .seconds(10))
        }
    }

    @Test("a slash or an equals sign counts as one also where an accent follows it")
    func accents() throws {
        for line in [["list", "--directory", "/\u{301}x"], ["list", "--directory=/\u{301}x"]] {
            #expect(try Invocation(line).text("--directory") == "/\u{301}x")
        }
        let error = #expect(throws: UsageError.self) { _ = try Invocation(["list", "--directory=\u{301}/"]) }
        #expect(error?.line.contains("is no absolute path") == true)
        let missing = "./no\u{301}such/\u{301}program"
        #expect(#expect(throws: Refusal.self) { try Program([missing]).check() }?.description.contains(missing) == true)
    }

    @Test("what follows -- is data, or a command's words")
    func rest() throws {
        #expect(try Invocation(["send", "x", "1", "--", "--json"]).arguments["DATA"] == "--json")
        let serve = try Invocation(["serve", "x", "--quiet", "--", "tr", "--delete", "a"])
        #expect(serve.program == ["tr", "--delete", "a"] && serve.has("--quiet"))
        #expect(try Invocation(["trace", "--", "prog", "--help"]).program == ["prog", "--help"])
        #expect(try Invocation(["trace", "12"]).arguments["PID"] == "12")
    }

    @Test(
        "a mistyped word gets a hint at what was probably meant",
        arguments: [
            (["lst"], "Did you mean list?"), (["reqeust", "x", "1"], "Did you mean request?"),
            (["activ"], "Did you mean activate?"), (["help", "servee"], "Did you mean serve?"),
            (["list", "--wach"], "Did you mean --watch?"), (["--jsno", "list"], "Did you mean --json?"),
            (["list", "--timeuot=1s"], "Did you mean --timeout?"), (["lst", "--help"], "Did you mean list?"),
            (["version"], "Did you mean --version?"), (["frobnicate"], nil), (["list", "--zzz"], nil),
        ] as [([String], String?)])
    func suggestions(line: [String], suggestion: String?) {
        let error = #expect(throws: UsageError.self) { _ = try Invocation(line) }
        #expect(error?.line.contains(suggestion ?? "There is no ") == true)
        #expect(error?.line.contains("Did you mean") == (suggestion != nil))
    }

    @Test("an option of another command is reported as one")
    func foreignOption() {
        let error = #expect(throws: UsageError.self) { _ = try Invocation(["send", "x", "1", "--hex"]) }
        #expect(error?.sentence.hasPrefix("send has no option --hex.") == true)
    }

    @Test(
        "an unknown letter is named as it was typed, with the way to write data that begins with a dash",
        arguments: [
            (["request", "x", "8", "-dash"], "There is no option -d; after -- nothing is an option."),
            (["request", "-xd", "x", "8"], "There is no option -d; after -- nothing is an option."),
            (["send", "x", "1", "-zebra"], "There is no option -zebra; after -- nothing is an option."),
            (["serve", "x", "-z"], "There is no option -z."), ([], "A command is missing."),
        ])
    func letters(line: [String], sentence: String) {
        let error = #expect(throws: UsageError.self) { _ = try Invocation(line) }
        #expect(error?.sentence == sentence)
    }

    @Test("letters are swapped, left out, added and changed at a cost of one each")
    func distances() {
        let pairs = [
            ("list", "list", 0), ("lsit", "list", 1), ("lst", "list", 1), ("lists", "list", 1), ("", "abc", 3),
        ]
        for (left, right, distance) in pairs { #expect(left.editDistance(to: right) == distance) }
    }

    @Test("durations are read and written as people do")
    func durations() {
        let read: [(String, Duration?)] = [
            ("1.5s", .milliseconds(1500)), ("200ms", .milliseconds(200)), ("2m", .seconds(120)), ("1h", .seconds(3600)),
            ("10", .seconds(10)), ("5us", .microseconds(5)), ("0", .zero), ("", nil), ("s", nil), ("-1s", nil),
            ("1x", nil),
            ("nan", nil), ("1e3", nil), ("99999999999", nil), ("1 s", nil),
        ]
        for (text, duration) in read { #expect(Duration(written: text) == duration, "\(text)") }
        let written: [(Duration, String)] = [
            (.zero, "0ns"), (.nanoseconds(870), "870ns"), (.milliseconds(12), "12ms"), (.milliseconds(1500), "1.5s"),
            (.seconds(200), "3m 20s"), (.seconds(187_200), "2d 4h"),
        ]
        for (duration, text) in written { #expect(duration.shown == text) }
    }

    @Test("sizes are read and written as people do")
    func sizes() {
        let read: [(String, Int?)] = [
            ("512", 512), ("64K", 65_536), ("64k", 65_536), ("1.5M", 1_572_864), ("2GiB", 2 << 30), ("10B", 10),
            ("", nil), ("K", nil), ("-1", nil), ("1Q", nil), ("9999999T", nil),
        ]
        for (text, count) in read { #expect(Int(size: text) == count, "\(text)") }
        let written = [(0, "0"), (1023, "1023"), (1024, "1K"), (1536, "1.5K"), (1 << 20, "1M"), (3_000_033, "2.9M")]
        for (count, text) in written { #expect(count.shownAsSize == text) }
    }

    @Test("the table of commands has each command once, and options that mean the same everywhere")
    func table() {
        #expect(CommandDescription.table.map(\.command) == Command.allCases)
        var kinds: [String: Bool] = [:]
        for description in CommandDescription.table {
            let options = description.allOptions
            #expect(Set(options.map(\.name)).count == options.count, "\(description.name)")
            #expect(
                Set(options.compactMap(\.letter)).count == options.compactMap(\.letter).count, "\(description.name)")
            for option in options {
                // Before the command is known, an option must be read all the same.
                #expect(kinds[option.name] ?? (option.value != nil) == (option.value != nil), "\(option.name)")
                kinds[option.name] = option.value != nil
                if let value = option.value, let standard = value.standard {
                    #expect(value.kind.objection(to: standard) == nil, "\(option.name)")
                }
            }
        }
    }

    @Test("help has every command, and every option of it")
    func help() {
        let overview = Help.overview()
        for description in CommandDescription.table {
            let text = Help.text(of: description)
            for synopsis in description.synopses {
                #expect(overview.contains("  \(synopsis)"))
                #expect(text.contains("portctl \(synopsis)\n"))
            }
            for option in description.allOptions {
                #expect(text.contains("  \(option.shown)") || text.contains(" \(option.shown)"))
            }
            #expect(text.split(separator: "\n").allSatisfy { $0.count <= 100 })
        }
    }

    @Test("the manual page in Docs is what portctl writes", .leakCheck)
    func manual() throws {
        #expect(try Document("Docs/portctl.1").text == Help.manPage)
    }
}
