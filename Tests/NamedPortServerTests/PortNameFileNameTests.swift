// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer
import TestSupport
import Testing

@Suite("PortName's file name", .leakCheck) struct PortNameFileNameTests {
    @Test(
        "the file name is as documented",
        arguments: [
            ("com.example.Worker_1-a", "com.example.Worker_1-a"), (".", "%2E"), ("..", "%2E."), (".a.b", "%2Ea.b"),
            ("a/b", "a%2Fb"), ("a b", "a%20b"), ("100%", "100%25"), ("%%", "%25%25"), ("%41", "%2541"), ("é", "%C3%A9"),
            ("a\nb", "a%0Ab"), ("📮", "%F0%9F%93%AE"),
        ])
    func documented(name: String, fileName: String) throws {
        #expect(try PortName(name).fileName == fileName)
        #expect(PortName(fileName: fileName)?.string == name)
    }

    @Test("beyond 200 bytes the file name is base64url, at most 173 bytes")
    func long() throws {
        let last = try PortName(String(repeating: "/", count: 66) + "ab")
        #expect(last.fileName == String(repeating: "%2F", count: 66) + "ab")
        let first = try PortName(String(repeating: "/", count: 66) + "abc")
        #expect(first.fileName == "%%" + String(repeating: "Ly8v", count: 22) + "YWJj")
        #expect(try PortName(String(repeating: "ÿ", count: 64)).fileName.utf8.count == 173)
        for name in [last, first] { #expect(PortName(fileName: name.fileName) == name) }
    }

    @Test(
        "a file name that is not a name's own stands for none",
        arguments: [
            "", ".", "..", ".hidden", "a b", "a/b", "é", "%", "a%", "a%4", "%4a", "%2f", "%41", "%61bc", "%00", "a%00",
            "%%", "%%YWJj", "%%YWJ=", "%C3", "%FF", "a%2", "%G0", "+", "a\n", "%%%%",
            // Base64url of 67 slashes and "ab", with other bits in the rest, with a bad length, and with "+" for "-".
            "%%" + String(repeating: "Ly8v", count: 22) + "L2FC" + "Y",
            "%%" + String(repeating: "Ly8v", count: 22) + "L2F", String(repeating: "x", count: 129),
            String(repeating: "%2F", count: 67),
        ])
    func foreign(fileName: String) {
        #expect(PortName(fileName: fileName) == nil)
    }

    @Test("other bits in the rest of the last base64url letter make another file name, of no name")
    func canonicalEnd() throws {
        // 67 bytes give 90 letters, the last with two bits of the name and four zero bits.
        let name = try PortName(String(repeating: "/", count: 67))
        #expect(name.fileName.hasSuffix("Lw"))
        #expect(PortName(fileName: name.fileName) == name)
        for letter in "xyz-_" { #expect(PortName(fileName: name.fileName.dropLast() + String(letter)) == nil) }
    }

    @Test("random names have distinct file names of at most 255 bytes, which decode to them", .seeded)
    func random() throws {
        var generator = Seed.generator()
        var names: [String: PortName] = [:]
        for _ in 0..<rounds(20_000) {
            guard let name = randomName(&generator) else { continue }
            let fileName = name.fileName
            #expect(fileName.utf8.count <= 255 && !fileName.hasPrefix(".") && !fileName.contains("/"))
            #expect(fileName.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F })
            #expect(PortName(fileName: fileName) == name, "name \(name.string.debugDescription)")
            if let other = names.updateValue(name, forKey: fileName) { #expect(other == name) }
        }
        #expect(names.count > rounds(10_000))
    }

    @Test("random file names decode to a name only if they are its file name", .seeded)
    func randomFileNames() throws {
        var generator = Seed.generator()
        let letters = Array("%%%%%%2F4AaZ.-_Ly8vYWJj/ é".utf8)
        var named = 0
        for _ in 0..<20_000 {
            let count = Int.random(in: 0...12, using: &generator)
            let bytes = (0..<count).map { _ in letters.randomElement(using: &generator) ?? 0 }
            let fileName = String(decoding: bytes, as: UTF8.self)
            guard let name = PortName(fileName: fileName) else { continue }
            named += 1
            #expect(name.fileName == fileName)
        }
        #expect(named > 0)
    }

    private func randomName(_ generator: inout SplitMix64) -> PortName? {
        let scalars: [ClosedRange<UInt32>] = [
            0x61...0x63, 0x2E...0x2F, 0x25...0x25, 1...0x7F, 0x80...0x2FF, 0x1F400...0x1F4FF,
        ]
        let range = scalars.randomElement(using: &generator) ?? 1...1
        let others = scalars.randomElement(using: &generator) ?? 1...1
        var string = ""
        for _ in 0..<Int.random(in: 1...128, using: &generator) {
            let value = UInt32.random(in: Bool.random(using: &generator) ? range : others, using: &generator)
            if let scalar = Unicode.Scalar(value) { string.unicodeScalars.append(scalar) }
        }
        return try? PortName(string)
    }
}
