// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import TestSupport
import Testing

/// The examples that use FoundationPorts do what their READMEs show.
@Suite("FoundationPorts: the examples", .leakCheck)
struct ExampleProgramTests {
    @Test(
        "an example of FoundationPorts prints what its README shows (S17, S18, S19)",
        // A program in C without the sanitizer loads no library with it.
        arguments: ["Listing-3-12-Foundation", "Listing-3-17-Foundation", "Foundation-Mixed"]
            + (hasSanitizer ? [] : ["Listing-3-17-C"]))
    func transcript(of example: String) async throws {
        let terminals = Terminal.all(of: try Document("Examples/\(example)/README.md"))
        #expect(terminals.count == 1)
        for terminal in terminals {
            try await withScratchDirectory(leaving: .anyFiles) { scratch in
                let process = try terminal.start(
                    namesIn: scratch, environment: try Toolchain.found().environment(scratch))
                let result = try await process.waitForExit()
                #expect(result.end == .exited(0))
                #expect(result.output == terminal.output + "\n")
                #expect(try portFiles(in: scratch) == [])
            }
        }
    }

    @Test("the worker and the main thread invalidate their ports: no name and no socket is left, ten times in turn")
    func names() async throws {
        try await withScratchDirectory { scratch in
            for _ in 0..<10 {
                let process = try ChildProcess(
                    builtProduct("listing-3-17-foundation"), environment: ["XDG_RUNTIME_DIR": scratch.path])
                let result = try await process.waitForExit()
                #expect(result.end == .exited(0), "\(result.output)\(result.errors)")
                #expect(result.errors == "")
                #expect(try portFiles(in: scratch) == [])
            }
        }
    }
}

/// The toolchain whose Foundation this process has: its clang builds programs in C.
struct Toolchain {
    /// Where `swift` and `clang` are.
    var programs: String
    /// Where `libFoundation.so` is.
    var libraries: String
    /// Where CoreFoundation's headers are.
    var headers: String { URL(fileURLWithPath: libraries).deletingLastPathComponent().path }

    struct NotFound: Error {
        var library: String
    }

    static func found() throws -> Toolchain {
        let library = "libFoundation.so"
        // `String(contentsOfFile:)` reads the first page of such a file only.
        let maps = try FileHandle(forReadingAtPath: "/proc/self/maps")?.readToEnd() ?? Data()
        let lines = String(decoding: maps, as: UTF8.self).split(separator: "\n")
        guard let line = lines.first(where: { $0.hasSuffix("/" + library) }) else { throw NotFound(library: library) }
        let libraries = URL(fileURLWithPath: String(line.drop { $0 != "/" })).deletingLastPathComponent()
        let programs = libraries.appendingPathComponent("../../../bin").standardized.path
        return Toolchain(programs: programs, libraries: libraries.path)
    }

    /// For a shell: its programs are found first, and temporary files are in the scratch directory.
    func environment(_ scratch: ScratchDirectory) throws -> [String: String?] {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        return ["PATH": "\(programs):\(path)", "TMPDIR": scratch.path]
    }
}
