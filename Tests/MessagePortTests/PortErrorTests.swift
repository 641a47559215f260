// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import PortSystem
import Testing

@Suite("PortError") struct PortErrorTests {
    @Test("every code has its own number, name and sentence")
    func codes() {
        #expect(PortError.Code.all.count == 45)
        #expect(Set(PortError.Code.all.map(\.rawValue)).count == PortError.Code.all.count)
        #expect(Set(PortError.Code.all.map(\.description)).count == PortError.Code.all.count)
        let sentences = PortError.Code.all.map { PortError($0).description }
        #expect(Set(sentences).count == PortError.Code.all.count)
        for (code, sentence) in zip(PortError.Code.all, sentences) {
            #expect(sentence.hasSuffix(".") || sentence.hasSuffix(")."), "\(code)")
            #expect(!sentence.contains("The port operation failed"), "\(code) has no sentence of its own")
            #expect(code.rawValue != 0, "zero means no reason on the wire")
        }
    }

    @Test("the numbers that travel never change")
    func wireNumbers() {
        #expect(PortError.Code.peerDied.rawValue == 3)
        #expect(PortError.Code.messageTooLarge.rawValue == 7)
        #expect(PortError.Code.descriptorsLost.rawValue == 9)
        #expect(PortError.Code.descriptorLimit.rawValue == 10)
        #expect(PortError.Code.peerRefused.rawValue == 17)
        #expect(PortError.Code.malformedPacket.rawValue == 18)
        #expect(PortError.Code.messageDropped.rawValue == 21)
        #expect(PortError.Code.tooManyConnections.rawValue == 35)
    }

    @Test("the sentence has the particulars")
    func particulars() {
        #expect(
            "\(PortError(.messageTooLarge, subject: .size(7, limit: 5)))".contains("(7 of at most 5 bytes);"))
        #expect(
            "\(PortError(.nameTaken, subject: .name("a\"b"), owner: 42))".contains(
                "(\"a\\\"b\", owner: process 42);"))
        #expect(
            "\(PortError(.directoryUntrusted, subject: .path("/x", .symbolicLink)))".contains(
                "(it is a symbolic link, /x);"))
        #expect("\(PortError(SystemError(ENOSPC)))".contains("(errno \(ENOSPC))"))
    }

    @Test("F-A13: what a peer has chosen moves no cursor where the error is printed")
    func harmless() {
        let text = "a\u{1B}[2J\u{9B}31m\u{7F}\u{202E}\u{2028}b"
        let errors = [
            PortError(.nameTaken, subject: .name(text)), PortError(.deadName).at(text),
            PortError(.directoryUntrusted, subject: .path("/" + text, .symbolicLink)),
            PortError(.remoteError, subject: .remote(code: 1, text: text)),
        ]
        for error in errors {
            let isHarmless = "\(error)".unicodeScalars.allSatisfy { (" "..."~").contains($0) }
            #expect(isHarmless, "\(error.code)")
        }
    }

    @Test("a descriptor limit of the kernel has its own code")
    func systemErrors() {
        #expect(PortError(SystemError(EMFILE)).code == .descriptorLimit)
        #expect(PortError(SystemError(ENFILE)).code == .descriptorLimit)
        #expect(PortError(SystemError(ENOSPC)).code == .systemCallFailed)
        #expect(PortError(SystemError(ENOSPC)).systemError == SystemError(ENOSPC))
        #expect(PortError(.deadName).systemError == nil)
    }
}
