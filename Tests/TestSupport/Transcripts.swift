// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation

/// Commands of a page, and what they print: an output block shows what the commands of the block before it print. A page
/// may have several; each is a terminal.
package struct Terminal {
    /// What is typed.
    package var commands: String
    /// What is shown.
    package var output: String

    /// Makes one.
    package init(commands: String, output: String) {
        self.commands = commands
        self.output = output
    }

    /// Those of a page.
    package static func all(of page: Document) -> [Terminal] {
        var commands = ""
        return page.fenced.compactMap { block in
            if block.information == "sh" { commands = block.contents }
            return block.information == "output" ? Terminal(commands: commands, output: block.contents) : nil
        }
    }

    /// Has a shell do what the commands say, with the programs that are built already. Errors are output, as on a
    /// terminal.
    ///
    /// - Parameters:
    ///   - scratch: a directory for the names of ports.
    ///   - directory: the working directory.
    ///   - environment: more variables.
    /// - Returns: the shell.
    /// - Throws: when a program was not built, or the shell cannot be started.
    package func start(
        namesIn scratch: ScratchDirectory, directory: String = Document.packageDirectory,
        environment: [String: String?] = [:]
    ) throws -> ChildProcess {
        let products = URL(fileURLWithPath: try builtProduct("portctl")).deletingLastPathComponent().path
        // What is built is built already.
        let swift =
            #"exec 2>&1; set -eu; swift() { [ "$1" = run ] || return 0; shift; program=$1; shift; "#
            + #""$PRODUCTS/$program" "$@"; }"#
        let variables = environment.merging(["XDG_RUNTIME_DIR": scratch.path, "PRODUCTS": products]) { own, _ in own }
        return try ChildProcess(
            "/bin/sh", ["-c", swift + "\n" + commands.replacing(".build/debug/", with: "$PRODUCTS/")],
            environment: variables, in: directory)
    }
}

/// The sockets and names that are left in a scratch directory. The lock file of an ended process is neither: the next
/// process that makes a socket removes it.
package func portFiles(in scratch: ScratchDirectory) throws -> [String] {
    let directory = scratch.path("swift-ports")
    if !FileManager.default.fileExists(atPath: directory) { return [] }  // no port was named
    return try FileManager.default.subpathsOfDirectory(atPath: directory)
        .filter { !["names", "sockets", "locks"].contains($0) && !$0.hasSuffix(".lock") }.sorted()
}
