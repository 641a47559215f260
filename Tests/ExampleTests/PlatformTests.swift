// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import Glibc
import TestSupport
import Testing

@Suite("Platforms", .leakCheck) struct PlatformTests {
    /// The oldest glibc with which the package is to compile.
    private static let oldestGlibc = 26

    /// Functions that were in a static part of glibc before 2.33, under the same names.
    private static let formerlyStatic: Set = ["fstat", "fstatat", "lstat", "mknod", "mknodat", "stat"]

    @Test(
        "portctl calls no function by a name that the oldest glibc lacks",
        .enabled(
            if: dlsym(nil, "__tsan_init") ?? dlsym(nil, "__asan_init") == nil,
            "a sanitizer has functions of its own in place of the C library's"))
    func names() throws {
        let names = try ELFImage(contentsOf: builtProduct("portctl")).namesFromGlibc
        // It does call the C library, and what is newer is seen to be.
        #expect(names.contains("sendmsg") && names.contains("pthread_create"))
        #expect(!Self.isInOldestGlibc("renameat2") && Self.isInOldestGlibc("pthread_create"))
        let tooNew = names.filter { !Self.isInOldestGlibc($0) && !Self.formerlyStatic.contains($0) }
        #expect(
            tooNew.isEmpty,
            "\(tooNew.sorted()) came after glibc 2.\(Self.oldestGlibc), or is not in it: call it by its number in CPortShims."
        )
    }

    @Test("one file asks which C library there is, and no other names one")
    func imports() throws {
        let files = try Document.sources().filter { $0.path.hasSuffix(".swift") }
        #expect(files.count > 100)
        let naming = files.filter { file in
            file.text.contains(anyOf: ["Glibc", "Musl", "Android", "Bionic"])
                && file.text.contains(/\b(Glibc|Musl|Android|Bionic)\b/)
        }
        #expect(naming.map(\.path) == ["Sources/PortCLibrary/PortCLibrary.swift"])
    }

    @Test("the page of platforms names the oldest glibc, and checks that are there")
    func page() throws {
        let page = try Document("Docs/Platforms.md")
        #expect(page.text.contains("glibc 2.\(Self.oldestGlibc) "))
        let checks = page.text.matches(of: /`(Tests\/[A-Za-z]+|\.ci\/run)/).map { String($0.1) }
        #expect(checks.count > 3)
        for check in checks {
            #expect(FileManager.default.isExecutableFile(atPath: Document.packageDirectory + "/" + check), "\(check)")
        }
        let script = try String(contentsOfFile: Document.packageDirectory + "/Tests/portable", encoding: .utf8)
        for part in ["musl", "arm64", "static"] {
            #expect(script.contains("Tests/portable \(part) ") && page.text.contains("Tests/portable \(part)`"))
        }
        for library in page.text.matches(of: /`(Glibc|Musl|Android)`/).map({ String($0.1) }) {
            let file = Document.packageDirectory + "/Sources/PortCLibrary/PortCLibrary.swift"
            #expect(try String(contentsOfFile: file, encoding: .utf8).contains("canImport(\(library))"))
        }
    }

    /// Whether glibc has had a function since `oldestGlibc` or before: what moved between its libraries keeps its old
    /// version.
    private static func isInOldestGlibc(_ name: String) -> Bool {
        typealias Lookup =
            @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>, UnsafePointer<CChar>)
            -> UnsafeMutableRawPointer?
        guard let function = dlsym(nil, "dlvsym") else { return false }
        // SAFETY: dlvsym(3) is of this type.
        let find = unsafeBitCast(function, to: Lookup.self)
        // Headers newer than 2.38 call the functions of C23 by names of their own.
        let name = name.hasPrefix("__isoc23_") ? String(name.dropFirst("__isoc23_".count)) : name
        let versions =
            ["2.2.5", "2.2.6"]
            + (2...oldestGlibc).flatMap { minor in ["", ".2", ".3", ".4"].map { "2.\(minor)" + $0 } }
        return versions.contains { find(nil, name, "GLIBC_\($0)") != nil }
    }
}

/// A program file, as far as it says what it imports from which library: elf(5), of 64 bits.
private struct ELFImage {
    private let bytes: Data

    private struct Section {
        var kind: UInt32
        var offset, size: Int
        var strings: Int
    }

    init(contentsOf path: String) throws {
        bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    }

    private func number<Number: FixedWidthInteger>(_ offset: Int, as kind: Number.Type) -> Number {
        bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: Number.self) }
    }

    private func string(_ offset: Int) -> String {
        String(decoding: bytes[offset...].prefix { $0 != 0 }, as: UTF8.self)
    }

    private var sections: [Section] {
        let start = Int(number(0x28, as: UInt64.self)), size = Int(number(0x3A, as: UInt16.self))
        return (0..<Int(number(0x3C, as: UInt16.self))).map { index in
            let at = start + index * size
            return Section(
                kind: number(at + 4, as: UInt32.self), offset: Int(number(at + 0x18, as: UInt64.self)),
                size: Int(number(at + 0x20, as: UInt64.self)), strings: Int(number(at + 0x28, as: UInt32.self)))
        }
    }

    /// The functions and variables that it imports from glibc's libraries.
    var namesFromGlibc: Set<String> {
        let sections = sections
        func section(_ kind: UInt32) -> Section? { sections.first { $0.kind == kind } }
        // SHT_DYNSYM, SHT_GNU_versym, SHT_GNU_verneed
        guard let symbols = section(11), let versions = section(0x6FFF_FFFF), let needed = section(0x6FFF_FFFE) else {
            return []
        }
        var glibc: Set<UInt16> = []
        var library = needed.offset
        while true {
            var version = library + Int(number(library + 8, as: UInt32.self))
            for _ in 0..<number(library + 2, as: UInt16.self) {
                let name = string(sections[needed.strings].offset + Int(number(version + 8, as: UInt32.self)))
                if name.hasPrefix("GLIBC_") { glibc.insert(number(version + 6, as: UInt16.self)) }
                version += Int(number(version + 12, as: UInt32.self))
            }
            let step = Int(number(library + 12, as: UInt32.self))
            if step == 0 { break }
            library += step
        }
        let names = (0..<symbols.size / 24).filter { index in
            let isUndefined = number(symbols.offset + index * 24 + 6, as: UInt16.self) == 0
            return isUndefined && glibc.contains(number(versions.offset + index * 2, as: UInt16.self) & 0x7FFF)
        }
        return Set(
            names.map {
                string(sections[symbols.strings].offset + Int(number(symbols.offset + $0 * 24, as: UInt32.self)))
            })
    }
}
