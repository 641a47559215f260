// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import NamedPortServer
import TestSupport
import Testing

@testable import portctl

/// What processes of the same user can do to a user of portctl.
@Suite("portctl: hostile owners of names", .portLeakCheck)
struct PortctlHostileTests {
    private static let own = ProcessInfo.processInfo.processIdentifier

    /// Answers instead of this process's trace service.
    private func withTraceService(
        in scratch: ScratchDirectory, ending end: @escaping @Sendable () -> [UInt8], _ body: () async throws -> Void
    ) async throws {
        let names = try PortNameServer(directory: scratch.path("names"))
        let thread = try ResidentThread(name: "hostile service")
        let port = try LocalMessagePort(name: TraceService.name(of: Self.own), nameServer: names) { _, message in
            message.id == TraceService.endID ? end() : []
        }
        try port.schedule(on: thread.loop)
        let result: Result<Void, any Error>
        do {
            result = .success(try await body())
        } catch {
            result = .failure(error)
        }
        port.invalidate()
        thread.stop()
        _ = await offThePool { thread.join() }
        try result.get()
    }

    private func trace(_ process: Int32, to output: String, in scratch: ScratchDirectory) -> [String] {
        ["trace", "\(process)", "-d", "1ms", "-o", output, "--directory", scratch.path("names")]
    }

    @Test("F-A12: a file made by others while a trace is recorded is not written, nor what a link there leads to")
    func traceOverLink() async throws {
        try await withScratchDirectory(leaving: .anyFiles) { scratch in
            let victim = try scratch.write("precious", to: "victim")
            let path = scratch.path("trace.json")
            try await withTraceService(in: scratch) {
                try? FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: victim)
                return Array("{}".utf8)
            } _: {
                let result = try await portctl(["trace", "\(Self.own)", "-d", "1ms", "-o", path], in: scratch)
                #expect(result.end == .exited(1) && isOneLine(result.errors) && result.errors.contains(path))
                #expect(try String(contentsOfFile: victim, encoding: .utf8) == "precious")
            }
        }
    }

    @Test("F-A13: a trace that is no text is shown on a terminal in digits")
    func traceOnTerminal() async throws {
        try await withScratchDirectory(leaving: .anyFiles) { scratch in
            let hostile = "\u{1B}]0;title\u{7}\u{9B}31m"
            try await withTraceService(in: scratch) {
                Array(hostile.utf8)
            } _: {
                let (tool, words) = (try builtProduct("portctl"), trace(Self.own, to: "-", in: scratch))
                try await offThePool {
                    let session = try TerminalSession(tool, words)
                    #expect(try session.end() == 0)
                    #expect(session.output.contains("1b 5d 30 3b"))
                    #expect(!session.output.unicodeScalars.contains("\u{1B}"))
                    #expect(!session.output.unicodeScalars.contains("\u{9B}"))
                }
                // Elsewhere it is unchanged.
                let result = try await portctl(["trace", "\(Self.own)", "-d", "1ms", "-o", "-"], in: scratch)
                #expect(Array(result.output.utf8) == Array(hostile.utf8))
            }
        }
    }

    @Test("F-A13: what JSON holds moves no cursor, and reverses no text")
    func json() async throws {
        try await withScratchDirectory(leaving: .anyFiles) { scratch in
            let name = "csi\u{9B}31mRED\u{7F}\u{202E}\u{2028}\u{E0001}caf\u{E9}"
            let port = MachPort()
            try PortNameServer(directory: scratch.path("names")).register(port, name: name)
            for words in [["list", "--names", "--json"], ["list", "--json", "-t", "1ms"]] {
                let output = try await portctl(words, in: scratch).output
                #expect(output.contains(#""csi\u009b31mRED\u007f\u202e\u2028\udb40\udc01caf"#))
                #expect(output.unicodeScalars.allSatisfy { $0 == "\n" || $0 == "\u{E9}" || (" "..."~").contains($0) })
                let read = try JSONSerialization.jsonObject(with: Data(output.utf8))
                let text = (read as? [String])?.first ?? (read as? [[String: Any]])?.first?["name"] as? String
                #expect(text.map { Array($0.utf8) } == Array(name.utf8))
            }
            port.invalidate()
        }
    }

    @Test("F-A13: a reply that changes the direction of text is shown in digits; letters that are joined are text")
    func direction() {
        for sign in ["\u{202E}", "\u{2066}", "\u{2028}", "\u{FEFF}", "\u{9B}", "\u{7F}", "\u{1B}", "\r"] {
            #expect(Array("a\(sign)b".utf8).readableText == nil)
        }
        for text in ["a\n\tb", "\u{1F468}\u{200D}\u{1F469}", "\u{646}\u{200C}\u{647}", "cafe\u{301}"] {
            #expect(Array(text.utf8).readableText == text)
        }
    }

    @Test("F-A14: a trace is accepted only from the process that was asked for, whichever process has the name")
    func traceOfAnother() async throws {
        try await withScratchDirectory { scratch in
            let server = try await PortctlServer("trace.1", in: scratch, ["--", "printf", "{}"])
            let result = try await portctl(["trace", "1", "-d", "1ms", "-o", "-"], in: scratch)
            #expect(result.end == .exited(3) && result.output == "")
            #expect(
                result.errors
                    == "portctl: trace.1 is the name of process \(server.process.processID), not of process 1.\n")
            #expect(try await PortctlServer.stop("trace.1", in: scratch) == done())
            #expect(try await server.end() == done())
        }
    }
}
