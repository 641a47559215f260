// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import TestSupport
import Testing

@Suite("CheckIn: the counts", .leakCheck, .seeded)
struct CheckInCountTests {
    @Test("every act counts text as wc does", arguments: ["C", "C.UTF-8"])
    func text(locale: String) async throws {
        try await withScratchDirectory { scratch in
            let empty = try scratch.write("", to: "empty")
            let noNewline = try scratch.write("two lines\nno newline", to: "no newline")
            let blank = try scratch.write(" \t\n\u{B}\u{C}\r\n  ", to: "blank")
            let files = ["README.md", "Package.swift", empty, noNewline, blank]
            for file in files { try await expectAgreement([file], locale, scratch) }
            try await expectAgreement([empty, noNewline], locale, scratch)
            try await expectAgreement(files + ["README.md"], locale, scratch)
            try await expectAgreement(["/dev/null", "README.md"], locale, scratch)
        }
    }

    @Test("every act counts any bytes as wc does", arguments: ["C", "C.UTF-8"])
    func bytes(locale: String) async throws {
        // Versions of wc differ in what they count as a word when bytes are no text.
        let version = try await ChildProcess("/usr/bin/env", ["wc", "--version"]).waitForExit().output
        if !version.hasPrefix("wc (GNU coreutils) 9.1\n") {
            try Test.cancel("The example agrees with wc of GNU coreutils 9.1, which is not here.")
        }
        try await withScratchDirectory { scratch in
            var generator = Seed.generator()
            let random = (0..<100_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
            let binary = scratch.path("binary")
            try Data(random).write(to: URL(fileURLWithPath: binary))
            let spaces = try scratch.write(
                "a\u{A0}b c\u{2007}d\u{202F}e\u{2060}f Grüße, Welt\u{3000}日本語\u{200B}x\u{85}y\u{2028}z\n", to: "spaces")
            for files in [[binary], [spaces], [binary, spaces]] { try await expectAgreement(files, locale, scratch) }
        }
    }

    private func expectAgreement(_ files: [String], _ locale: String, _ scratch: ScratchDirectory) async throws {
        let environment = ["LC_ALL": locale]
        let wc = try ChildProcess(
            "/usr/bin/env", ["wc"] + files, environment: environment, in: Document.packageDirectory)
        let expected = try await wc.waitForExit().output.split(separator: "\n")
        let result = try await run("checkin", files, namesIn: scratch, environment: environment)
        #expect(result.end == .exited(0), "\(result.errors)")
        let acts = acts(of: result.output)
        #expect(acts.count == 3)
        for act in acts { #expect(table(of: act) == expected, "\(files) in \(locale)") }
    }
}
