// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import NamedPortServer
import PortSystem
import TestSupport
import Testing

@testable import portctl

/// A shell in a terminal that tmux emulates, so that a test sees the screen as a user at the terminal does.
///
/// tmux is driven in its control mode: commands go in and are answered, and it reports when the shell has written
/// something.
final class TmuxSession {
    private let client: ChildProcess
    /// Whether the shell has written something since the screen was read.
    private var hasChanged = true

    /// Starts a shell.
    ///
    /// - Parameters:
    ///   - command: its command line.
    ///   - home: its home, which is where tmux has its socket, too.
    ///   - columns: how wide the terminal is.
    ///   - environment: what differs from this process's environment besides.
    /// - Throws: why there is no tmux.
    init(_ command: String, home: ScratchDirectory, columns: Int, environment: [String: String?]) throws {
        var variables = environment
        for name in ["TMUX", "TMUX_PANE", "ENV", "BASH_ENV", "ZDOTDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "COLUMNS"] {
            variables.updateValue(nil, forKey: name)
        }
        variables.merge(["HOME": home.path, "LC_ALL": "C.UTF-8", "TERM": "xterm"]) { $1 }
        client = try ChildProcess(
            "/usr/bin/tmux", ["-S", home.path("tmux"), "-f", "/dev/null", "-u", "-C", "new-session", command],
            environment: variables, in: home.path)
        _ = try answer()  // to new-session
        _ = try ask("refresh-client -C \(columns)x24")
    }

    /// Has tmux do something.
    ///
    /// - Returns: the lines of its answer.
    @discardableResult
    func ask(_ command: String) throws -> [String] {
        try client.write(command + "\n")
        return try answer()
    }

    private func answer() throws -> [String] {
        var lines: [String]?
        while let line = try client.nextLine() {
            if line.hasPrefix("%begin ") {
                lines = []
            } else if line.hasPrefix("%end "), let lines {
                return lines
            } else if line.hasPrefix("%error "), let lines {
                throw TmuxError(text: lines.joined(separator: " "))
            } else if lines != nil {
                lines?.append(line)
            } else {
                note(line)
            }
        }
        throw TmuxError(text: "tmux has ended")
    }

    private func note(_ line: String) {
        if line.hasPrefix("%output ") { hasChanged = true }
    }

    /// Types. A tab is the Tab key.
    func type(_ text: String) throws {
        let bytes = text.utf8.map { String($0, radix: 16) }
        try ask("send-keys -H \(bytes.joined(separator: " "))")
    }

    /// The lines of the screen down to the last that is not empty, without spaces at their ends.
    func screen() throws -> [String] {
        hasChanged = false
        var lines = try ask("capture-pane -p").map { String($0.reversed().drop { $0 == " " }.reversed()) }
        while lines.last == "" { lines.removeLast() }
        return lines
    }

    /// Waits until the screen is as it should be.
    ///
    /// - Throws: what it shows when the watchdog expires, or the shell ends.
    func wait(until isRight: ([String]) -> Bool) throws {
        var shown: [String] = []
        let deadline = Watchdog.deadline
        do {
            while true {
                shown = try screen()
                if isRight(shown) { return }
                // Also where something is written all the time.
                if .now >= deadline { throw TmuxError(text: "the watchdog ended a wait") }
                while !hasChanged {
                    guard let line = try client.nextLine() else { throw TmuxError(text: "tmux has ended") }
                    note(line)
                }
            }
        } catch {
            throw TmuxError(text: "\(error); the screen shows:\n\(shown.joined(separator: "\n"))")
        }
    }

    /// Ends tmux, and the shell with it, whatever it does.
    func abort() {
        try? client.write("kill-server\n")
        _ = try? client.waitForExit()
    }

    /// Ends the shell, and tmux with it.
    func end() throws -> ProcessResult {
        try type("\u{15}exit\r")
        let deadline = Watchdog.deadline
        while try client.nextLine() != nil {
            if .now >= deadline { throw TmuxError(text: "the watchdog ended a wait") }
        }
        return try client.waitForExit()
    }
}

/// tmux could not do what it should.
struct TmuxError: Error, CustomStringConvertible {
    let text: String

    var description: String { text }
}

extension TmuxSession {
    /// Starts a shell that completes, and holds the names while a test uses it.
    static func with(
        _ shell: Shell, columns: Int = 80, setUp: String = "", names: [String] = [],
        _ body: @escaping @Sendable (TmuxSession, ScratchDirectory) throws -> Void
    ) async throws {
        let products = URL(fileURLWithPath: try builtProduct("portctl")).deletingLastPathComponent().path
        try await withScratchDirectory(leaving: .anything) { home in
            let directory = try PortNameServer(directory: home.path("swift-ports"))
            let ports = try names.map { name in
                let port = MachPort()
                try directory.register(port, name: name)
                return port
            }
            try home.write("", to: "some file")
            try FileManager.default.createDirectory(
                atPath: home.path("sub directory"), withIntermediateDirectories: false)
            try await offThePool {
                let session = try TmuxSession(
                    commands[shell] ?? "", home: home, columns: columns,
                    environment: ["PATH": "\(products):/usr/bin:/bin", "XDG_RUNTIME_DIR": home.path])
                do {
                    try session.type(setUp + (preparations[shell] ?? "") + "clear; echo ready\r")
                    try session.wait { $0 == ["ready", ">"] }
                    try body(session, home)
                } catch {
                    session.abort()
                    throw error
                }
                #expect(try session.end().end == .exited(0))
            }
            ports.forEach { $0.invalidate() }
        }
    }

    /// Whether both the shell and tmux are installed.
    static func isThere(_ shell: Shell) -> Bool {
        [shell.rawValue, "tmux"].allSatisfy { FileManager.default.isExecutableFile(atPath: "/usr/bin/\($0)") }
    }

    private static let commands: [Shell: String] = [
        .bash: "bash --norc --noprofile", .zsh: "zsh -f", .fish: "fish --no-config --private",
    ]

    /// What a user's start file does.
    private static let preparations: [Shell: String] = [
        .bash: #"PS1='> '; eval "$(portctl completion bash)"; "#,
        .zsh: #"PS1='> '; autoload -U compinit; compinit -D -u; eval "$(portctl completion zsh)"; "#,
        .fish: #"function fish_prompt; echo '> '; end; set fish_autosuggestion_enabled 0; "#
            + "portctl completion fish | source; ",
    ]
}
