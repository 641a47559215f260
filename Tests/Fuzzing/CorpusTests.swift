// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import TestSupport
import Testing

/// The fuzzers' inputs as tests: the examples of Docs/WireFormat.md, and every input that once broke a promise.
@Suite("Fuzzing: the corpus", .leakCheck) struct CorpusTests {
    @Test("every input of the packet fuzzer keeps the promises of the decoder")
    func packets() throws {
        for input in try corpus("packet") { PacketFuzzing.check(input.value) }
    }

    @Test("every input of the name fuzzer keeps the promises of the codec")
    func names() throws {
        for input in try corpus("name") { NameFuzzing.check(input.value) }
    }

    @Test("every input of the ring fuzzer keeps the promises of both ends")
    func rings() throws {
        for input in try corpus("ring") { RingFuzzing.check(input.value) }
    }

    @Test("every input of the snapshot fuzzer keeps the promises of the decoder")
    func snapshots() throws {
        for input in try corpus("snapshot") { SnapshotFuzzing.check(input.value) }
    }

    @Test("the packet fuzzer begins with the examples of the wire format's page")
    func packetSeeds() throws {
        let inputs = try corpus("packet")
        let examples = try Document("Docs/WireFormat.md").fenced.filter { $0.information.hasPrefix("hex ") }
        #expect(!examples.isEmpty)
        for example in examples {
            let packet = try example.contents.split { $0.isWhitespace }.map { try #require(UInt8($0, radix: 16)) }
            let length = [UInt8(packet.count & 0xFF), UInt8(packet.count >> 8)]
            let name = String(example.information.dropFirst(4))
            #expect(inputs[name] == length + [packet[6]] + packet, "\(name)")
        }
    }

    @Test("the name fuzzer begins with the record of the wire format's page")
    func recordSeed() throws {
        let record = try #require(try Document("Docs/WireFormat.md").blocks("record").first)
        #expect(try corpus("name")["record"] == Array((record + "\n").utf8))
    }

    @Test("an input represents packets: what is cut short, lost or empty is no breach of the fuzzer")
    func framing() {
        for input in [[], [0], [0, 0], [0, 0, 0], [255, 255, 255], [1, 0, 255, 77]] as [[UInt8]] {
            PacketFuzzing.check(input)
        }
    }

    private func corpus(_ kind: String) throws -> [String: [UInt8]] {
        let directory = Document.packageDirectory + "/Tests/Fuzzing/Corpus/" + kind
        let files = try FileManager.default.contentsOfDirectory(atPath: directory)
        #expect(files.count > 5)
        return try Dictionary(
            uniqueKeysWithValues: files.map { file in
                (file, Array(try Data(contentsOf: URL(fileURLWithPath: directory + "/" + file))))
            })
    }
}
