// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
@testable import MessagePort
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// What errors and traps say: what happened, to which port or name, and what to do.
@Suite("Sentences", .portLeakCheck)
struct SentenceTests {
    @Test("the sentence of a code says what happened and what to do, and no more", arguments: PortError.Code.all)
    func codes(_ code: PortError.Code) {
        let sentence = PortError(code).description
        let parts = sentence.dropLast().split(separator: "; ")
        #expect(parts.count == 2, "what happened; what to do: \(sentence)")
        #expect(sentence.hasSuffix("."))
        #expect(sentence.first?.isUppercase == true)
        #expect(!sentence.dropLast().contains(". "), "one sentence: \(sentence)")
        #expect(sentence.count <= 140, "\(sentence.count) characters: \(sentence)")
    }

    @Test("what is known of an error is in its one sentence, after what happened")
    func particulars() {
        func said(_ error: PortError) -> String { error.description }
        #expect(
            said(PortError(.deadName).at("port 3"))
                == "The port at the other end is gone (port 3); look it up again.")
        #expect(said(PortError(.peerDied).at(name: "a")).contains(#" (the port "a"); "#))
        #expect(said(PortError(.nameUnknown, subject: .name("a")).at(name: "a")).contains(#" has the name ("a"); "#))
        #expect(said(PortError(.peerDied).at("port 3").at("port 4")).contains("(port 3); "))
        #expect(said(PortError(.deadName).at("port 3").at(name: "a")).contains(#"(the port "a"); "#))
        let sizes: [PortError.Unit: String] = [.bytes: "(7 of at most 5 bytes);", .rights: "(7 of at most 5 rights);"]
        for (unit, text) in sizes {
            #expect(said(PortError(.messageTooLarge, subject: .size(7, limit: 5, of: unit))).contains(text))
        }
        #expect(
            said(PortError.remote(code: 9, text: "No.\nNever.").at(name: "a"))
                == #"The receiver answered with an error of its own (its code 9, it says "No.\nNever.", "#
                + #"the port "a", the message had been read); do what its code asks for."#)
    }

    @Test("an error of sending, and of asking, names the port")
    func rights() async throws {
        try await onNewThread { try self.rightsOnThread() }
    }

    private func rightsOnThread() throws {
        let port = MachPort(queueLimit: 1)
        let right = port.makeSendRight()
        let label = "\(right)".replacing("right to ", with: "")
        expect([.replyTimedOut], about: label) { _ = try right.request(MachMessage(), replyLimit: .zero) }
        expect([.sendTimedOut], about: label) { try right.send(MachMessage(), within: .zero) }
        expect([.sendTimedOut], about: label) { _ = try right.request(MachMessage(), sendLimit: .zero) }
        port.invalidate()
        expect([.deadName], about: label) { try right.send(MachMessage(), within: .zero) }
        expect([.deadName], about: label) { _ = try right.trySend(MachMessage()) }
        expect([.invalidPort], about: label) { _ = try port.tryReceive() }
        expect([.invalidPort], about: label) { _ = try port.receive(within: .zero) }
        expect([.invalidPort], about: label) { try port.schedule() }
        expect([.invalidPort], about: label) { _ = try port.doorbell() }
    }

    @Test("an error of a task names the port")
    func tasks() async throws {
        let port = MachPort(queueLimit: 1)
        let right = port.makeSendRight()
        let label = "\(right)".replacing("right to ", with: "")
        try await right.send(MachMessage(), within: .zero)
        await #expect { try await right.send(MachMessage(), within: .zero) } throws: { isAbout(label, $0) }
        await #expect { _ = try await right.request(MachMessage(), sendLimit: .zero) } throws: { isAbout(label, $0) }
    }

    @Test("a receiver that does not reply is named")
    func receivers() async throws {
        try await onNewThread { try self.receiversOnThread() }
    }

    private func receiversOnThread() throws {
        let port = MachPort { _, _ in }
        let right = port.makeSendRight()
        let label = "\(right)".replacing("right to ", with: "")
        let thread = try ResidentThread(name: "silent")
        try port.schedule(on: thread.loop)
        expect([.replyDropped], about: label) { _ = try right.request(MachMessage()) }
        port.setHandler { _, message in try? message.replyError(7, "no") }
        expect([.remoteError], about: label) { _ = try right.request(MachMessage()) }
        port.setHandler { port, _ in port.invalidate() }
        expect([.peerDied], about: label) { _ = try right.request(MachMessage()) }
        thread.stop()
        thread.join()
    }

    @Test("an error of a named port, and of its name, has the name")
    func names() async throws {
        try await onNewThread { try self.namesOnThread() }
    }

    private func namesOnThread() throws {
        try withScratchDirectory { scratch in
            let names = try PortNameServer(directory: scratch.path("names"))
            let local = try LocalMessagePort(name: "org.example.a", nameServer: names, queueLimit: 1) { _, _ in nil }
            let remote = try RemoteMessagePort(name: "org.example.a", nameServer: names)
            let named = #""org.example.a""#
            expect([.nameTaken], about: named) {
                _ = try LocalMessagePort(name: "org.example.a", nameServer: names) { _, _ in nil }
            }
            expect([.replyTimedOut], about: named) { try remote.request(MachMessage(), replyLimit: .zero) }
            expect([.sendTimedOut], about: named) { try remote.send(MachMessage(), sendLimit: .zero) }
            expect([.nameNotDeclared], about: #""org.example.b""#) {
                try names.checkIn(MachPort(), name: "org.example.b")
            }
            local.invalidate()
            expect([.deadName], about: named) { try remote.send(MachMessage()) }
            remote.invalidate()
            expect([.invalidPort], about: named) { try remote.request(MachMessage()) }
            expect([.nameUnknown], about: named) { _ = try names.lookUp("org.example.a") }
            expect([.nameWaitTimedOut], about: named) { _ = try names.waitFor("org.example.a", within: .zero) }
            expect([.invalidPort], about: named) { try names.register(local.port, name: "org.example.a") }
        }
    }

    @Test("every trap of the libraries is a sentence that is printed, and says what to do")
    func traps() throws {
        var count = 0
        let words = ["precondition", "assert", "fatalError"]
        for source in try Document.sources() where source.path.hasSuffix(".swift") {
            let (file, text) = (source.path, source.text)
            guard text.contains(anyOf: words) else { continue }
            // A precondition says nothing in a release build.
            #expect(!text.contains(/\b(precondition|preconditionFailure|assert|assertionFailure)\(/), "\(file)")
            for call in text.matches(of: /\bfatalError\(\s*((?:"(?:[^"\\]|\\.)*"[\s+]*)+)\)/) {
                count += 1
                let sentence = String(call.1).replacing(/"\s*\+\s*"/, with: "").trimmingCharacters(
                    in: .whitespacesAndNewlines)
                let said = sentence.dropFirst().dropLast()
                #expect(said.contains(/[.;:?] ./), "\(file): what happened, and what to do: \(said)")
                #expect(said.hasSuffix(".") || said.hasSuffix("?"), "\(file): \(said)")
            }
            #expect(text.matches(of: /\bfatalError\(\)/).isEmpty, "\(file)")
        }
        #expect(count >= 25)
    }

    private func expect(
        _ codes: Set<PortError.Code>, about location: String, sourceLocation: SourceLocation = #_sourceLocation,
        _ body: () throws -> Void
    ) {
        #expect(sourceLocation: sourceLocation) {
            try body()
        } throws: { error in
            codes.contains((error as? PortError)?.code ?? .systemCallFailed) && isAbout(location, error)
        }
    }

    private func isAbout(_ location: String, _ error: any Error) -> Bool {
        "\(error)".contains("\(location))") || "\(error)".contains("\(location), ")
    }
}
