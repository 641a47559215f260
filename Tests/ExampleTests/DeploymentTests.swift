// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import NamedPortServer
import TestSupport
import Testing

private let analyzer = "/usr/bin/systemd-analyze"
private let activator = "/usr/bin/systemd-socket-activate"

/// systemd accepts what is in `Docs/Deployment`. `Tests/containers` does what its files for containers say.
@Suite("Deployment", .leakCheck(warmingUp: warmUpIOThread))
struct DeploymentTests {
    private static let directory = Document.packageDirectory + "/Docs/Deployment"

    /// The files of a folder, with the program that is built instead of the installed one.
    private static func units(_ folder: String) throws -> [(name: String, text: String)] {
        let program = try builtProduct("notes")
        let path = "\(directory)/systemd/\(folder)"
        return try FileManager.default.contentsOfDirectory(atPath: path).sorted().map { name in
            let text = try String(contentsOfFile: "\(path)/\(name)", encoding: .utf8)
            return (name, text.replacing("/usr/local/bin/notes", with: program))
        }
    }

    /// What systemd says of units; nothing, if it has nothing against them.
    private static func verdict(_ units: [(name: String, text: String)], _ folder: String) async throws -> ProcessResult
    {
        try await withScratchDirectory { scratch in
            for unit in units { _ = try scratch.write(unit.text, to: unit.name) }
            let manager = folder == "user" ? ["--user"] : []
            let process = try ChildProcess(
                analyzer, manager + ["verify"] + units.map { scratch.path($0.name) },
                environment: ["XDG_RUNTIME_DIR": scratch.path])
            return try await process.waitForExit()
        }
    }

    @Test("the page names each file, and the command that the file's head names")
    func page() throws {
        let page = try Document("Docs/Deployment.md")
        let linked = Set(page.linkTargets)
        let commands = page.blocks("console").joined(separator: "\n")
        var count = 0
        let files = try FileManager.default.subpathsOfDirectory(atPath: Self.directory)
        for file in files where file.contains(".") || file == "Dockerfile" {
            #expect(linked.contains("Deployment/\(file)"), "\(file)")
            let text = try String(contentsOfFile: "\(Self.directory)/\(file)", encoding: .utf8)
            for match in text.matches(of: /(?m)^#   (.+)$/) {
                count += 1
                #expect(commands.contains("$ \(match.1)"), "\(file): \(match.1)")
            }
        }
        #expect(count == 3)
    }

    @Test(
        "systemd has nothing against the units",
        .enabled(if: FileManager.default.isExecutableFile(atPath: analyzer), "needs systemd-analyze"),
        arguments: ["user", "system"])
    func verify(folder: String) async throws {
        let units = try Self.units(folder)
        #expect(units.count == 2)
        #expect(try await Self.verdict(units, folder) == done())
        // It would say so.
        let wrong = units.map { ($0.name, $0.text.replacing("NoNewPrivileges=", with: "NoNewPrivilege=")) }
        #expect(try await Self.verdict(wrong, folder).errors.contains("NoNewPrivilege"))
    }

    @Test(
        "the units of the system are hardened as far as systemd can judge it",
        .enabled(if: FileManager.default.isExecutableFile(atPath: analyzer), "needs systemd-analyze"))
    func exposure() async throws {
        for unit in try Self.units("system") {
            let process = try ChildProcess(
                analyzer, ["security", "--offline=true", "--threshold=15", "systemd/system/\(unit.name)"],
                in: Self.directory)
            let result = try await process.waitForExit()
            #expect(result.end == .exited(0), "\(unit.name): \(result.output)")
        }
    }

    @Test(
        "the socket's unit starts the service's with the first client, which is answered",
        .enabled(if: FileManager.default.isExecutableFile(atPath: activator), "needs systemd-socket-activate"))
    func activation() async throws {
        let units = try Self.units("user")
        func setting(_ key: String, of kind: String) throws -> String {
            let unit = try #require(units.first { $0.name.hasSuffix(kind) })
            let line = try #require(unit.text.split(separator: "\n").first { $0.hasPrefix(key + "=") })
            return String(line.dropFirst(key.count + 1))
        }
        try await withScratchDirectory(leaving: .anything) { scratch in
            let path = try setting("ListenSequentialPacket", of: ".socket").replacing("%t", with: scratch.path)
            let mode = try #require(Int(try setting("DirectoryMode", of: ".socket"), radix: 8))
            try FileManager.default.createDirectory(
                atPath: URL(fileURLWithPath: path).deletingLastPathComponent().path, withIntermediateDirectories: true,
                attributes: [.posixPermissions: mode])
            let command = try setting("ExecStart", of: ".service").split(separator: " ").map(String.init)
            let server = try ChildProcess(
                activator,
                ["--seqpacket", "-l", path, "--setenv=XDG_RUNTIME_DIR", "--setenv=ASAN_OPTIONS"] + command,
                environment: ["XDG_RUNTIME_DIR": scratch.path].merging(withoutLeakSearch) { $1 })
            let names = try PortNameServer(directory: scratch.path("swift-ports"))
            _ = try await names.waitFor("org.example.notes", within: .seconds(60))
            #expect(try await run("notes", ["add", "from the first client"], namesIn: scratch) == done("note 1\n"))
            #expect(try await run("notes", ["stop"], namesIn: scratch) == done())
            #expect(try await server.waitForExit().end == .exited(0))
        }
    }
}
