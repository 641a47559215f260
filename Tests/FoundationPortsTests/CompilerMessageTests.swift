// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import TestSupport
import Testing

/// Files that do not compile, or only with a warning, and what the compiler reports: the toolchain's own checks them here.
@Suite("FoundationPorts: what the compiler reports", .machPorts, .serialized)
struct CompilerMessageTests {
    /// The messages about a file of a client.
    private func messages(
        _ lines: String..., modules: [String] = ["Foundation"], named: Bool = true
    ) async throws -> [String] {
        let imports = (modules + ["FoundationPorts"]).map { "import \($0)" }
        return try await withScratchDirectory(leaving: .anyFiles) { scratch in
            let file = try scratch.write((imports + lines).joined(separator: "\n"), to: "client.swift")
            let names = Document.packageDirectory + "/Tests/SpellingAliases/Names.swift"
            let library = URL(fileURLWithPath: try builtProduct("libFoundationPortsC.so"))
            let build = library.deletingLastPathComponent().path
            let maps = ["CPortShims", "CFoundationPorts"].flatMap {
                ["-Xcc", "-fmodule-map-file=\(build)/\($0).build/module.modulemap"]
            }
            let result = try await ChildProcess(
                try Toolchain.found().programs + "/swiftc",
                ["-typecheck", "-I", "\(build)/Modules", "-module-cache-path", "\(build)/ModuleCache"] + maps
                    + (named && modules.contains("CoreFoundation") ? [file, names] : [file])
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

    @Test("a file that imports CoreFoundation names the type of a result that could be CoreFoundation's")
    func results() async throws {
        let loop = "CFRunLoopGetCurrent()"
        let found = try await messages(
            "func mode() -> Bool {",
            "    let mode = CFRunLoopCopyCurrentMode(\(loop))",
            "    return mode == .defaultMode",
            "}",
            "func modeName() -> CFString? {",
            "    let mode = CFRunLoopCopyCurrentMode(\(loop))",
            "    return mode?.rawValue",
            "}",
            "func name(_ port: CFMessagePort?) -> String {",
            "    let name = CFMessagePortGetName(port)",
            "    return name! as String",
            "}",
            "func count() -> Int {",
            "    let modes = CFRunLoopCopyAllModes(\(loop))",
            "    return modes!.count",
            "}",
            modules: ["CoreFoundation", "Foundation"])
        let page = try Document("Sources/FoundationPorts/FoundationPorts.docc/BringYourMacProgram.md")
        let rows = page.tableRows.filter { $0.count == 2 && $0[0].hasSuffix("` in such a file") }
        #expect(rows.count == 5)
        for row in rows where !row[0].hasPrefix("`ambiguous") {
            let message = "error: " + row[0].dropFirst().prefix { $0 != "`" }
            #expect(found.contains(message), "\(found)")
        }

        let named = try await messages(
            "func mode() -> Bool {",
            "    let mode: CFRunLoopMode? = CFRunLoopCopyCurrentMode(\(loop))",
            "    return mode == .defaultMode",
            "}",
            "func name(_ port: CFMessagePort?) -> String {",
            "    let name: CFString? = CFMessagePortGetName(port)",
            "    return name! as String",
            "}",
            "func count() -> Int {",
            "    let modes: NSArray? = CFRunLoopCopyAllModes(\(loop))",
            "    return modes!.count",
            "}",
            modules: ["CoreFoundation", "Foundation"])
        #expect(named == [])
    }

    @Test("a file that imports CoreFoundation without the four names finds two of each")
    func ambiguous() async throws {
        let found = try await messages(
            "func text(_ name: CFString) {}", modules: ["CoreFoundation", "Foundation"], named: false)
        #expect(found == ["error: 'CFString' is ambiguous for type lookup in this context"])
        let local = try await messages(
            "func port() { CFMessagePortCreateLocal(nil, nil, nil, nil, nil) }",
            "func named() { CFMessagePortCreateLocal(nil, nil as CFString?, nil, nil, nil) }",
            modules: ["CoreFoundation", "Foundation"])
        #expect(local == ["error: ambiguous use of 'CFMessagePortCreateLocal'"])
    }
}
