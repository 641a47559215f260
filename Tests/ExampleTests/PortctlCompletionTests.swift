// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import NamedPortServer
import TestSupport
import Testing

@testable import portctl

/// What completion offers, without a shell.
@Suite("portctl: what may come where")
struct PortctlCandidateTests {
    private static let held: [(name: String, owner: Int32)] = [
        ("org.example.a", 12), ("it's", 7), ("moves\u{1B}[2Jthe cursor", 7),
    ]

    private func candidates(_ line: [String], in directory: String? = nil) -> Candidates {
        Candidates(line) { asked in
            #expect(asked == directory)
            return Self.held
        }
    }

    private func texts(_ line: [String]) -> [String]? {
        guard case .words(let words) = candidates(line) else { return nil }
        return words.map(\.text)
    }

    @Test("commands come first, and after a word that is none comes nothing")
    func commands() {
        #expect(texts([""]) == Command.allCases.map(\.rawValue))
        #expect(texts(["help", "a"]) == Command.allCases.map(\.rawValue))
        #expect(texts(["completion", ""]) == ["bash", "zsh", "fish"])
        #expect(texts(["frobnicate", ""]) == [])
        #expect(texts(["frobnicate", "-"]) == [])
    }

    @Test("every command has its options and those of all", arguments: CommandDescription.table.map(\.command))
    func options(of command: Command) {
        let options = command.description.allOptions.map(\.name)
        #expect(texts([command.rawValue, "-"])?.filter { $0 != "--" } == options)
        #expect(texts(["-"]) == Option.common.map(\.name))
    }

    @Test("names are offered where one may be, also after an option; one that would move the cursor is not")
    func names() {
        let names = Candidates.words([
            .init(text: "org.example.a", meaning: "process 12"), .init(text: "it's", meaning: "process 7"),
        ])
        #expect(candidates(["info", ""]) == names)
        #expect(candidates(["request", "--hex", "-t", "1s", "org"]) == names)
        #expect(candidates(["--directory", "/d", "wait", ""], in: "/d") == names)
        #expect(candidates(["info", "--directory=/d", ""], in: "/d") == names)
        #expect(texts(["request", "x", ""]) == [])
        #expect(texts(["trace", ""]) == ["7", "12", "--"])
    }

    @Test("a value is of its option's kind")
    func values() {
        #expect(candidates(["list", "--directory", ""]) == .directories)
        #expect(candidates(["--directory=/t"]) == .directories)
        #expect(candidates(["send", "x", "1", "--file", ""]) == .files)
        #expect(candidates(["send", "x", "1", "-f", ""]) == .files)
        #expect(candidates(["send", "x", "1", "--file=a"]) == .files)
        #expect(texts(["list", "--timeout", ""]) == [])
        #expect(texts(["list", "--watch", ""]) == [])
    }

    @Test("-- is offered where a program must follow, and after it comes a program")
    func programs() {
        #expect(texts(["serve", "x", ""]) == ["--"])
        #expect(texts(["activate", "x", "-"])?.last == "--")
        #expect(texts(["activate", "-"])?.contains("--") == false)
        #expect(texts(["info", "x", "-"])?.contains("--") == false)
        for line in [["serve", "x", "--", ""], ["activate", "x", "--", "tr", "-"], ["trace", "--", "a", "--", ""]] {
            #expect(candidates(line) == .program)
        }
        #expect(texts(["send", "x", "1", "--", "-"]) == [])  // data
        #expect(texts(["completion", "bash", "--", ""]) == [])
    }

    @Test(
        "a word of bash is read and written as it is quoted",
        arguments: [
            ("", "a b", #"a\ b"#), ("x", "x$(y)", #"x\$\(y\)"#), ("'", "it's", #"it'\''s"#), ("'a b", "a b!", "a b!"),
            ("\"", #"a"$`\!"#, #"a\"\$\`\\"'!'""#), (#"a\ b"#, "a b:c=d", #"a\ b:c=d"#), ("", "über", "über"),
        ])
    func bashWords(written: String, word: String, inserted: String) {
        #expect(Completion.bashWords([word, "other"], for: written).first == inserted)
        let quote = ["'", "\""].first { written.hasPrefix($0) } ?? ""
        #expect(Completion.unquoted(quote + inserted + quote) == word)
    }

    @Test("F-A1: a name that would be read as an option is offered only where no option may be")
    func dashes() {
        let names: Candidates.Names = { _ in [("--file=x", 1), ("-\u{301}x", 1), ("plain", 1)] }
        func texts(_ line: [String]) -> [String] {
            guard case .words(let words) = Candidates(line, names: names) else { return [] }
            return words.map(\.text)
        }
        #expect(texts(["info", ""]) == ["plain"])
        #expect(texts(["send", ""]) == ["plain"])
        #expect(texts(["info", "--", ""]) == ["--file=x", "-\u{301}x", "plain"])
        #expect(!texts(["info", "--f"]).contains("--file=x"))
    }

    @Test("bash gets what begins as the word does; the others choose themselves, and get descriptions")
    func answers() {
        #expect(Completion.answer(to: ["'re"], for: .bash) { _ in [] } == "words\nrequest\n")
        let line = Completion.answer(to: ["wait", "zzz"], for: .fish) { _ in Self.held }
        #expect(line == "words\norg.example.a\tprocess 12\nit's\tprocess 7\n")
        #expect(Completion.answer(to: ["completion", "x"], for: .zsh) { _ in [] } == "words\nbash\nzsh\nfish\n")
        #expect(Completion.answer(to: ["send", "--file", "x"], for: .zsh) { _ in [] } == "files\n")
    }
}

/// Completion as a user who presses Tab sees it: each shell in a terminal of tmux.
@Suite("portctl: completion in a terminal", .portLeakCheck)
struct PortctlCompletionTests {
    @Test("bash completes", .enabled(if: TmuxSession.isThere(.bash), "bash or tmux is not installed"))
    func bash() async throws {
        try await complete(in: .bash)
        try await show(in: .bash)
    }

    /// Each character of ASCII, alone and followed by a combining mark, which makes both one character for a reader.
    private static let signs = (UInt8(32)...126).flatMap { byte in
        let sign = Character(UnicodeScalar(byte))
        return ["x\(sign)y", "x\(sign)\u{301}y", "x\(sign)\u{301};touch run"]
    }

    @Test("F-A1: bash reads what is inserted as the name, whatever follows a sign", arguments: ["", "'", "\""])
    func marks(quote: String) async throws {
        let words = try Self.signs.map { name in
            let inserted = Completion.bashWords([name], for: quote + "x")
            return "printf '%s\\n' \(quote)\(try #require(inserted.first))\(quote)"
        }
        let result = try await ChildProcess("/bin/bash", ["-c", words.joined(separator: "\n")]).waitForExit()
        #expect(result.end == .exited(0) && result.errors == "")
        // As texts, names in another spelling would be equal.
        #expect(Array(result.output.utf8) == Array(Self.signs.map { $0 + "\n" }.joined().utf8))
        for name in Self.signs {
            let inserted = quote + (Completion.bashWords([name], for: quote + "x").first ?? "") + quote
            #expect(Array(Completion.unquoted(inserted).utf8) == Array(name.utf8))
        }
    }

    @Test(
        "F-A1: what completion makes of a hostile name runs nothing",
        .enabled(if: Shell.allCases.contains(where: TmuxSession.isThere), "no shell, or no tmux, is installed"),
        arguments: Shell.allCases.filter(TmuxSession.isThere))
    func hostile(shell: Shell) async throws {
        let names = ["q'\u{301};touch run;#", "d\"\u{301};touch run;#", "--file=x", "n$\u{301}(touch run)"]
        try await TmuxSession.with(shell, names: names) { session, home in
            for typed in ["'q", "\"d", "q", "d", "n", "\"n", "--fi"] {
                try session.type("\u{15}portctl wait \(typed)\t")
                try session.wait { ($0.last ?? "").contains("portctl wait") }
                try session.type("\u{1}echo \u{5}\r")
                try session.wait { $0.last == ">" }
                #expect(!FileManager.default.fileExists(atPath: home.path("run")), "\(typed) has run a name")
                try session.type("clear\r")
                try session.wait { $0 == [">"] }
            }
        }
    }

    @Test(
        "bash completes with the package bash-completion",
        .enabled(
            if: TmuxSession.isThere(.bash) && FileManager.default.fileExists(atPath: packagePath), "it is not installed"
        ))
    func bashCompletion() async throws {
        try await complete(in: .bash, setUp: ". \(Self.packagePath); ")
    }

    @Test("zsh completes", .enabled(if: TmuxSession.isThere(.zsh), "zsh or tmux is not installed"))
    func zsh() async throws {
        try await complete(in: .zsh)
        try await show(in: .zsh)
    }

    @Test("fish completes", .enabled(if: TmuxSession.isThere(.fish), "fish or tmux is not installed"))
    func fish() async throws {
        try await complete(in: .fish)
        try await show(in: .fish)
    }

    /// What is typed before the Tab key, what the shell makes of it, and where that differs in fish, which quotes fewer
    /// characters. A Z is typed after the Tab key, so that an empty result is visible, too.
    private static let cases: [(String, String, fish: String?)] = [
        ("req", "request Z", nil), ("list --wa", "list --watch Z", nil), ("completion fi", "completion fish Z", nil),
        ("help act", "help activate Z", nil), ("info org.example.", "info org.example.echo Z", nil),
        ("request 'org.ex", "request 'org.example.echo' Z", nil),
        ("info org:", "info org:colons:2 Z", nil), ("info org:col", "info org:colons:2 Z", nil),
        ("info a", #"info a\ \$\(touch\ run\)\ it\'s Z"#, nil),
        ("info 'a", #"info 'a $(touch run) it'\''s' Z"#, fish: #"info 'a $(touch run) it\'s' Z"#),
        ("wait --directory . org", "wait --directory . orgZ", nil), ("wait --timeout ", "wait --timeout Z", nil),
        ("frobnicate ", "frobnicate Z", nil), ("request org.example.echo 1 x", "request org.example.echo 1 xZ", nil),
        ("serve x -- nohu", "serve x -- nohup Z", nil), ("serve x -- cat so", #"serve x -- cat some\ file Z"#, nil),
        ("send x 1 --file so", #"send x 1 --file some\ file Z"#, nil),
        ("send x 1 --file=so", #"send x 1 --file=some\ file Z"#, nil),
        ("list --directory su", #"list --directory sub\ directory/Z"#, nil),
        ("list --directory=su", #"list --directory=sub\ directory/Z"#, nil),
    ]

    private func complete(in shell: Shell, setUp: String = "") async throws {
        try await TmuxSession.with(
            shell, setUp: setUp, names: ["org.example.echo", "org:colons:2", "a $(touch run) it's"]
        ) {
            session, home in
            for (typed, expected, fish) in Self.cases {
                try session.type("\u{15}portctl \(typed)\tZ")
                try session.wait { $0.last == "> portctl \(shell == .fish ? fish ?? expected : expected)" }
            }
            #expect(!FileManager.default.fileExists(atPath: home.path("run")), "a name was run")
        }
    }

    /// The page shows a screen of each shell; its first line says what was typed.
    private func show(in shell: Shell) async throws {
        let shown = try #require(try Document("Docs/portctl.md").blocks("screen \(shell)").first)
        let lines = shown.split(separator: "\n").map(String.init)
        try await TmuxSession.with(shell, names: ["org.example.busy", "org.example.echo", "org.example.upper"]) {
            session, _ in
            // zsh shows its list after the first Tab, unless the second is there already.
            try session.type("\u{0C}portctl request org.example.\t" + (shell == .zsh ? "" : "\t"))
            try session.wait { $0.map(Self.withoutNumbers) == lines.map(Self.withoutNumbers) }
        }
    }

    private static func withoutNumbers(_ line: String) -> String {
        line.replacing(/\ +/) { _ in " " }.replacing(/process [0-9]+/) { _ in "process 1" }
    }

    private static let packagePath = "/usr/share/bash-completion/bash_completion"
}
