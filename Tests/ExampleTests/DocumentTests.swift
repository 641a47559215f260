// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
@testable import MessagePort
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite("Documents", .leakCheck)
struct DocumentTests {
    @Test("every link within the package leads to a file, and to a heading when it names one")
    func links() throws {
        for page in try Document.all() {
            for target in page.linkTargets where !target.contains("://") {
                let parts = target.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
                let directory = URL(fileURLWithPath: Document.packageDirectory + "/" + page.path)
                    .deletingLastPathComponent()
                let file =
                    parts[0].isEmpty
                    ? Document.packageDirectory + "/" + page.path
                    : directory.appendingPathComponent(String(parts[0])).standardizedFileURL.path
                #expect(FileManager.default.fileExists(atPath: file), "\(page.path) links to \(target)")
                guard parts.count == 2, file.hasPrefix(Document.packageDirectory + "/") else { continue }
                let linked = try Document(String(file.dropFirst(Document.packageDirectory.count + 1)))
                #expect(linked.anchors.contains(String(parts[1])), "\(page.path) links to \(target)")
            }
        }
    }

    @Test("every page of Docs is on the map")
    func map() throws {
        let linked = Set(try Document("Docs/README.md").linkTargets)
        for page in try Document.all() where page.path.hasPrefix("Docs/") && page.path != "Docs/README.md" {
            #expect(linked.contains(String(page.path.dropFirst("Docs/".count))), "\(page.path)")
        }
    }

    @Test("every page that a catalog names is there, and the map names every catalog")
    func catalogs() throws {
        let pages = try Document.all().filter { $0.path.contains(".docc/") }
        for page in pages {
            for match in page.text.matches(of: /`((?:Docs|Examples)\/[^`]+\.md)`/) {
                let file = Document.packageDirectory + "/" + match.1
                #expect(FileManager.default.fileExists(atPath: file), "\(page.path) names \(match.1)")
            }
        }
        let linked = Set(try Document("Docs/README.md").linkTargets)
        let landings = pages.map(\.path).filter { path in
            path.split(separator: "/").last == path.split(separator: "/")[1] + ".md"
        }
        #expect(landings.count == 4)
        for page in landings { #expect(linked.contains("../\(page)")) }
    }

    @Test("every example that a catalog names is there")
    func catalogExamples() throws {
        for page in try Document.all() where page.path.contains(".docc/") {
            for match in page.text.matches(of: /examples? `([a-z0-9-]+)`/) { _ = try builtProduct(String(match.1)) }
        }
    }

    @Test("every command that a page shows is there")
    func commands() throws {
        var count = 0
        for page in try Document.all() {
            // FoundationPortsTests run all commands of the page about C, which has a compiler's, too.
            if page.path.hasPrefix("Examples/Listing-3-17-C/") { continue }
            for line in page.blocks("sh").joined(separator: "\n").split(separator: "\n") {
                let words = line.prefix { $0 != "#" }.split(separator: " ")
                guard let program = words.first else { continue }
                count += 1
                switch (program, words.dropFirst().first) {
                case ("swift", "build"), ("swift", "test"), ("swift", "format"), ("wc", _): break
                case ("swift", "run") where words.count == 2: #expect(page.path == "README.md")  // the reader's own
                case ("swift", "run") where words[2] == "--package-path":
                    // Another package, which is not built here: its directory, `-c release`, its program.
                    try #require(words.count > 6)
                    let sources = "\(Document.packageDirectory)/\(words[3])/Sources/\(words[6])"
                    #expect(FileManager.default.fileExists(atPath: sources), "\(page.path): \(line)")
                case ("swift", "run"): _ = try builtProduct(String(try #require(words.dropFirst(2).first)))
                default:
                    let path = Document.packageDirectory + "/" + program
                    #expect(FileManager.default.isExecutableFile(atPath: path), "\(page.path): \(line)")
                }
            }
        }
        #expect(count >= 10)
    }

    @Test("the README is plain ASCII, and gives one command for a program of one's own and two for this package")
    func readme() throws {
        let readme = try Document("README.md")
        #expect(readme.text.utf8.allSatisfy { $0 == 10 || (32...126).contains($0) })
        #expect(readme.blocks("sh").prefix(2) == ["swift run", "swift run checkin\nswift test"])
        #expect(readme.text.split(separator: "\n").allSatisfy { $0.count <= 120 })
    }

    @Test("the table of errors has every code, with its number, once")
    func errors() throws {
        let rows = try Document("Docs/Errors.md").tableRows.filter { Int($0[0]) != nil }.map { [$0[0], $0[1]] }
        let codes = PortError.Code.all.sorted { $0.rawValue < $1.rawValue }
        #expect(rows == codes.map { ["\($0.rawValue)", "`\($0)`"] })
        for code in codes { #expect(!PortError(code).description.contains("The port operation failed"), "\(code)") }
    }

    @Test("the table of limits has the numbers of the code")
    func limits() throws {
        let rows = try Document("Docs/Limits.md").tableRows.filter { $0.count == 4 && $0[1].contains(".") }
        let shown = Dictionary(uniqueKeysWithValues: rows.map { ($0[1], $0[2]) })
        let limits = [
            "`MachPort.defaultQueueLimit`": MachPort.defaultQueueLimit,
            "`MachPort.maximumQueueLimit`": MachPort.maximumQueueLimit,
            "`MessageLimits.payload`": MessageLimits.payload,
            "`MessageLimits.components`": MessageLimits.components,
            "`MessageLimits.rights`": MessageLimits.rights,
            "`MessageLimits.descriptors`": MessageLimits.descriptors,
            "`PortError.remoteTextLimit`": PortError.remoteTextLimit,
            "`MessageReader.depthLimit`": MessageReader.depthLimit,
            "`PacketHeader.packetLimit`": PacketHeader.packetLimit,
            "`PortTransfer.sizeLimit`": PortTransfer.sizeLimit,
            "`PacketSender.backlogLimit`": PacketSender.backlogLimit,
            "`PacketSender.replyBacklogLimit`": PacketSender.replyBacklogLimit,
            "`PeerLimits.queuedBytes`": PeerLimits.standard.queuedBytes,
            "`PeerLimits.processesOfUser`": PeerLimits.standard.processesOfUser,
            "`PeerLimits.messageBytes`": PeerLimits.standard.messageBytes,
            "`LocalPort.tapLimit`": LocalPort.tapLimit,
            "`TappedMessage.byteLimit`": TappedMessage.byteLimit,
            "`PortName.limit`": PortName.limit,
            "`NameRecord.pathLimit`": NameRecord.pathLimit,
            "`SharedRing.capacity`": SharedRing.capacity,
            "`MemoryPool.defaultCapacity`": MemoryPool.defaultCapacity,
            "`MemoryPool.largestLoan`": MemoryPool.largestLoan,
            "`MemoryLender.segmentLimit`": MemoryLender.segmentLimit,
            "`MemoryBorrower.mappingLimit`": MemoryBorrower.mappingLimit,
            "`LoanRecord.limit`": LoanRecord.limit,
            "`Tuning.earningCount`": Tuning.earningCount,
            "`Tuning.ringLimit`": Tuning.ringLimit,
            "`Tuning.pendingReplies`": Tuning.pendingReplies,
            "`Tuning.probesPerRequest`": Tuning.probesPerRequest,
            "`RunLoopTracer.defaultCapacity`": RunLoopTracer.defaultCapacity,
            "`RunLoopTracer.maximumCapacity`": RunLoopTracer.maximumCapacity,
        ]
        var expected = limits.mapValues { "\($0)" }
        let shares = DescriptorShares(limit: .max)
        expected["`PeerLimits.connections`"] = "\(shares.connections), or an eighth of the process's descriptors"
        expected["`PeerLimits.queuedDescriptors`"] = "\(shares.queued), or a quarter of the process's descriptors"
        #expect(shown == expected)
        #expect(SendOnceRight.defaultLimit == .seconds(1))
        #expect(RunLoopStallMonitor.defaultThreshold == .milliseconds(250))
    }

    @Test("every suite that the page about security names is there")
    func security() throws {
        let tests = Document.packageDirectory + "/Tests"
        let files = try FileManager.default.subpathsOfDirectory(atPath: tests).filter { $0.hasSuffix(".swift") }
        let known = Set(files.map { URL(fileURLWithPath: $0).deletingPathExtension().lastPathComponent })
        let named = try Document("Docs/Security.md").text.matches(of: /`([A-Za-z]+(?:Tests|Contract))`/).map {
            String($0.1)
        }
        #expect(named.count > 20)
        #expect(Set(named).subtracting(known) == [])
    }

    @Test("the table of locks has every lock of the sources, and no other")
    func locks() throws {
        let rows = try Document("Docs/LockOrder.md").tableRows.filter { $0.count == 5 && $0[2].hasPrefix("`Sources/") }
        let shown = try rows.map { row in
            let property = try #require(row[1].split(separator: ".").last)
            return "\(row[2].dropFirst().dropLast()) \(property.dropLast())"
        }
        let pattern =
            /\b(?:let|var) ([A-Za-z]+)(?:: Mutex<| = Mutex[<(]| = SendLock\(|: UnsafeMutablePointer<pthread_mutex| = UnsafeMutablePointer<pthread_mutex)/
        var found: [String] = []
        for file in try Document.sources() where file.path.hasSuffix(".swift") {
            for line in file.text.lines(withAnyOf: ["Mutex", "SendLock(", "pthread_mutex"]) {
                for match in line.matches(of: pattern) { found.append("\(file.path) \(match.1)") }
            }
        }
        #expect(found.count > 20)
        #expect(Set(rows.map { $0[1] + $0[2] }).count == rows.count, "a lock is there twice")
        // As often as it is there: types of one file may have locks of the same name.
        #expect(shown.sorted() == found.sorted())
    }

    @Test("the glossary has each word once, in alphabetical order")
    func glossary() throws {
        let words = try Document("Docs/Glossary.md").tableRows.map { $0[0] }
        let tables = words.split(separator: "Word")
        #expect(tables.count == 2)
        for table in tables {
            let keys = table.map { $0.lowercased().replacing("-", with: " ") }
            #expect(keys == keys.sorted())
        }
        let all = tables.flatMap(\.self)
        #expect(Set(all).count == all.count)
    }
}
