// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import TestSupport
import Testing

/// Files that do not compile, or only with a warning, and what the compiler reports: the toolchain's own checks them here.
@Suite("FoundationPorts: what the compiler reports", .machPorts, .serialized)
struct CompilerMessageTests {
    /// The messages about a file of a client.
    private func messages(_ lines: String..., modules: [String] = ["Foundation"]) async throws -> [String] {
        let imports = (modules + ["FoundationPorts"]).map { "import \($0)" }
        return try await withScratchDirectory(leaving: .anyFiles) { scratch in
            let file = try scratch.write((imports + lines).joined(separator: "\n"), to: "client.swift")
            let names = Document.packageDirectory + "/Tests/SpellingAliases/Names.swift"
            let build = URL(fileURLWithPath: try builtProduct("libFoundationPortsC.so")).deletingLastPathComponent().path
            let maps = ["CPortShims", "CFoundationPorts"].flatMap {
                ["-Xcc", "-fmodule-map-file=\(build)/\($0).build/module.modulemap"]
            }
            let result = try await ChildProcess(
                try Toolchain.found().programs + "/swiftc",
                ["-typecheck", "-I", "\(build)/Modules", "-module-cache-path", scratch.path("cache")] + maps
                    + (modules.contains("CoreFoundation") ? [file, names] : [file])
            ).waitForExit()
            let found = result.errors.matches(of: /client\.swift:[0-9]+:[0-9]+: ((?:error|warning): .*)/)
            if found.isEmpty { #expect(result.end == .exited(0), "\(result.errors)") }
            return found.map { String($0.1) }
        }
    }

    @Test("D-N7: a server of names needs no cast, and one with a cast compiles with a warning")
    func nameServers() async throws {
        let found = try await messages(
            "func register(_ port: NSMachPort) {",
            "    NSMachBootstrapServer.sharedInstance().registerPort(port, name: \"a\")",
            "    (NSMachBootstrapServer.sharedInstance() as! NSMachBootstrapServer).registerPort(port, name: \"b\")",
            "    _ = (NSMessagePortNameServer.sharedInstance() as AnyObject as! NSPortNameServer).port(forName: \"b\")",
            "}")
        #expect(found == ["warning: forced cast of 'NSMachBootstrapServer' to same type has no effect"])
    }
}
