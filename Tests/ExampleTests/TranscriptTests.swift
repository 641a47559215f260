// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import PortSystem
import TestSupport
import Testing

/// Every example does what its README shows.
///
/// In a README, an output block shows what the commands of the block before it print. Each such pair is a terminal.
/// When a README has several, they are open at once: the next one begins when the one before has printed its first
/// line.
@Suite("Examples: the transcripts", .leakCheck)
struct TranscriptTests {
    /// The folders of Examples whose README has transcripts.
    private static let examples = [
        "CheckIn", "Greeter", "Listing-3-1", "Listing-3-2", "Listing-3-3", "Listing-3-10", "Listing-3-12",
        "Listing-3-16", "Listing-3-17", "ResidentThread", "ActivityTrace", "StallMonitor",
        "SingleInstance", "Notes", "WorkerPool", "Progress", "OtherLoops", "Spawned", "Restart", "Handover",
        "Frames",
    ]

    /// Those that are run by `FoundationPortsTests`.
    private static let examplesOfFoundationPorts = [
        "Foundation-Mixed", "Listing-3-12-Foundation", "Listing-3-17-C", "Listing-3-17-Foundation",
    ]

    @Test("an example prints what its README shows (S4, S6, S7, S15 to S22, S25)", arguments: examples)
    func transcript(of example: String) async throws {
        let terminals = Terminal.all(of: try Document("Examples/\(example)/README.md"))
        try #require(!terminals.isEmpty)
        let shown = terminals.map { withoutNumbers($0.output + "\n") }
        var printed = try await Self.printed(by: terminals)
        // Two measure time: on a machine that was busy just then they rightly print something else.
        for _ in 0..<5 where printed != shown && ["StallMonitor", "ResidentThread"].contains(example) {
            printed = try await Self.printed(by: terminals)
        }
        for (printed, shown) in zip(printed, shown) { #expect(printed == shown) }
    }

    /// - Returns: what the commands of each print.
    private static func printed(by terminals: [Terminal]) async throws -> [String] {
        try await withScratchDirectory { scratch in
            var running: [ChildProcess] = []
            for terminal in terminals {
                if let process = running.last { _ = try await offThePool { try process.nextLine() } }
                running.append(try terminal.start(namesIn: scratch))
            }
            var printed: [String] = []
            for process in running {
                let result = try await process.waitForExit()
                #expect(result.end == .exited(0))
                printed.append(withoutNumbers(result.output))
            }
            #expect(try portFiles(in: scratch) == [])
            return printed
        }
    }

    @Test("every folder of Examples is tested here, and is in the table of which to read")
    func completeness() throws {
        let directory = Document.packageDirectory + "/Examples"
        let folders = try FileManager.default.contentsOfDirectory(atPath: directory).filter { !$0.hasSuffix(".md") }
        #expect(Set(folders) == Set(Self.examples + Self.examplesOfFoundationPorts))
        let rows = try Document("Examples/README.md").tableRows.filter { $0.count > 2 }
        for folder in folders {
            let program = try #require(rows.first { $0.contains("[\(folder)](\(folder)/README.md)") }?.last)
            let commands = try Document("Examples/\(folder)/README.md").blocks("sh").joined(separator: "\n")
            let command = folder.hasSuffix("-C") ? "/" : "swift run "
            #expect(commands.contains("\(command)\(program.dropFirst().dropLast())"), "\(folder)")
        }
    }

    @Test("no example swallows an error, except that of a reply whose requester has gone")
    func errors() throws {
        let directory = Document.packageDirectory + "/Examples"
        let files = try FileManager.default.subpathsOfDirectory(atPath: directory).filter { $0.hasSuffix(".swift") }
        #expect(files.count > 20)
        for file in files {
            let text = try String(contentsOfFile: directory + "/" + file, encoding: .utf8)
            for line in text.split(separator: "\n") where line.contains("try?") {
                // The name of a thread is shown as it is found.
                let isAnswer = line.contains(/try\? message\.(?:reply(?:Error)?\(|replyPort\?\.send\()/)
                #expect(isAnswer || file == "CheckIn/Transcript.swift", "\(file): \(line)")
            }
        }
    }

    @Test("no example lets an error out of its top level, or traps: both end a program with a report of its registers")
    func reports() throws {
        let directory = Document.packageDirectory + "/Examples"
        let files = try FileManager.default.subpathsOfDirectory(atPath: directory).filter { $0.hasSuffix(".swift") }
        for file in files {
            let text = try String(contentsOfFile: directory + "/" + file, encoding: .utf8)
            #expect(!text.contains("fatalError"), "\(file)")
            guard file.hasSuffix("main.swift") else { continue }
            // None of these lets out what is in a `do`, in a function or in a type.
            var isInside = false
            for line in text.split(separator: "\n") {
                if line == "}" { isInside = false }
                if !isInside { #expect(!line.contains(/\btry\b(?!\?)/), "\(file): \(line)") }
                let opens = /^(?:do\b|\)|.*\b(?:func|struct|class|enum|extension) ).*\{$/
                if line.first != " ", line.contains(opens) { isInside = true }
            }
        }
    }

    @Test("trace and Notes are recorded from outside, as their READMEs show")
    func tracing() async throws {
        try await withScratchDirectory(leaving: .anything) { scratch in
            let command = try Terminal.commands(of: "ActivityTrace", with: "portctl trace")
            let process = try Terminal(commands: command, output: "").start(namesIn: scratch, directory: scratch.path)
            #expect(try await process.waitForExit().end == .exited(0))
            let names = try traceNames(in: scratch.path("outside.json"))
            #expect(names.contains { $0.hasPrefix("timer \"tick\"") })

            let service = try ChildProcess(
                builtProduct("notes"), ["serve"], environment: ["XDG_RUNTIME_DIR": scratch.path])
            #expect(try await offThePool { try service.nextLine() } == "serves org.example.notes")
            let shown = try Terminal.commands(of: "Notes", with: "portctl trace 4711")
            let own = shown.replacing("4711", with: "\(service.processID)").replacing("2s", with: "20ms")
            let tool = try Terminal(commands: own, output: "").start(namesIn: scratch, directory: scratch.path)
            #expect(try await tool.waitForExit().end == .exited(0))
            #expect(try !traceNames(in: scratch.path("notes.json")).isEmpty)
            #expect(try await run("notes", ["stop"], namesIn: scratch) == done())
            #expect(try await service.waitForExit().end == .exited(0))
        }
    }

    @Test("Notes is started by its first client, as its README shows")
    func activation() async throws {
        try await withScratchDirectory(leaving: .anything) { scratch in
            let command = try Terminal.commands(of: "Notes", with: "portctl activate")
            // The shell becomes portctl, which gets the signal below.
            let supervisor = try Terminal(
                commands: command.replacing("swift run portctl", with: "exec \"$PRODUCTS/portctl\""), output: ""
            ).start(namesIn: scratch, directory: scratch.path)
            let line = try await offThePool { try supervisor.nextLine() }
            #expect(line == "portctl: Process \(supervisor.processID) listens for org.example.notes.")
            #expect(try await run("notes", ["add", "buy stamps"], namesIn: scratch) == done("note 1\n"))
            #expect(try await run("notes", ["list"], namesIn: scratch) == done("1  buy stamps\n"))
            #expect(try await run("notes", ["add", "\u{1B}[2Jred"], namesIn: scratch) == done("note 2\n"))
            #expect(try await run("notes", ["list"], namesIn: scratch) == done("1  buy stamps\n2  [2Jred\n"))
            #expect(try heldNames(in: scratch).contains("org.example.notes"))
            supervisor.kill(SIGTERM)
            #expect(try await supervisor.waitForExit().end == .exited(0))
        }
    }

    @Test("no example is a product of the package: its name stays free for users of the package")
    func products() throws {
        let manifest = try String(contentsOfFile: Document.packageDirectory + "/Package.swift", encoding: .utf8)
        let list = try #require(manifest.firstMatch(of: /products: \[\n((?: {8}.*\n)+) {4}\],\n/)?.1)
        let products = list.matches(of: /\.(?:library|executable)\(name: "([^"]+)"/).map { String($0.1) }
        #expect(
            products == [
                "RunLoopCore", "MessagePort", "NamedPortServer", "FoundationPorts", "FoundationPortsC", "portctl",
            ])
    }
}

extension Terminal {
    /// The commands of the block of an example's README in which this command is, with the programs that are built
    /// already.
    fileprivate static func commands(of example: String, with command: String) throws -> String {
        let blocks = try Document("Examples/\(example)/README.md").blocks("sh")
        let block = try #require(blocks.first { $0.contains("swift run \(command)") })
        return block.replacing(".build/debug/", with: "$PRODUCTS/")
    }
}

/// The names of the events in a file that `portctl trace` has written.
func traceNames(in path: String) throws -> Set<String> {
    let data = try Data(contentsOf: URL(fileURLWithPath: path))
    let object = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    let events = try #require(object["traceEvents"] as? [[String: Any]])
    return Set(events.compactMap { $0["name"] as? String })
}

/// Makes equal what differs from run to run: the numbers of processes, threads and run-loop items become 1, 2, … in the
/// order in which they appear; times, and numbers after "about", become 0.
private func withoutNumbers(_ transcript: String) -> String {
    var known: [Substring: Int] = [:]
    func rank(_ number: Substring) -> String {
        let rank = known[number] ?? known.count + 1
        known[number] = rank
        return String(rank)
    }
    return
        transcript
        .replacing(/[0-9]+\.[0-9]{6} \[([0-9]+):([0-9]+)\]/) { "0 [process \($0.1):thread \($0.2)]" }
        .replacing(/[0-9]+ ms/) { _ in "0 ms" }
        .replacing(/about [0-9]+/) { _ in "about 0" }
        .replacing(/(process |thread |checkin\.main\.|#)([0-9]+)/) { $0.1 + rank($0.2) }
}
