// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import TestSupport
import Testing

@Suite("What binaries link", .leakCheck)
struct LinkTests {
    @Test(
        "a program of the libraries alone links neither Foundation nor Dispatch's overlay",
        arguments: ["portctl", "port-test-peer"])
    func libraries(product: String) throws {
        let needed = try neededLibraries(of: builtProduct(product))
        #expect(needed.contains("libswiftCore.so"))
        #expect(needed.contains("libswiftSynchronization.so"))
        // An incremental build may keep what an import that is gone now asked for.
        #expect(needed.filter(isUnwanted) == [], "If no source of the libraries imports them, build from clean.")
    }

    @Test("a program that imports Foundation is seen to link it, and Dispatch's overlay with it")
    func control() throws {
        let unwanted = try neededLibraries(of: builtProduct("checkin")).filter(isUnwanted)
        #expect(unwanted.contains("libFoundation.so"))
        #expect(unwanted.contains("libswiftDispatch.so"))
    }

    @Test("what is no ELF file is reported")
    func foreign() {
        #expect(throws: ELFError.self) {
            try neededLibraries(of: Document.packageDirectory + "/README.md")
        }
    }

    /// What the Swift runtime itself links does not count: only what the program itself asks for is checked. Nor does
    /// `libdispatch.so` without its Swift overlay: the thread sanitizer's runtime asks for it.
    private func isUnwanted(_ library: String) -> Bool {
        ["foundation", "swiftdispatch"].contains { library.lowercased().contains($0) }
    }
}

/// A file that is no 64-bit little-endian ELF file with a dynamic section.
private struct ELFError: Error {
    var path: String
}

/// The shared libraries that a program asks for by itself: the `DT_NEEDED` entries of elf(5).
private func neededLibraries(of path: String) throws -> [String] {
    let file = try Data(contentsOf: URL(fileURLWithPath: path))
    func number(_ offset: Int, bytes count: Int) throws -> Int {
        guard offset >= 0, offset + count <= file.count else { throw ELFError(path: path) }
        return file[offset..<offset + count].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
    func text(_ offset: Int) throws -> String {
        guard offset >= 0, offset < file.count else { throw ELFError(path: path) }
        return String(decoding: file[offset...].prefix { $0 != 0 }, as: UTF8.self)
    }
    // The magic, 64 bits, least byte first.
    guard file.starts(with: [0x7F, 0x45, 0x4C, 0x46, 2, 1]) else { throw ELFError(path: path) }
    let headers = try number(32, bytes: 8)
    let segments = try (0..<number(56, bytes: 2)).map { index in
        let header = try headers + index * number(54, bytes: 2)
        return (
            type: try number(header, bytes: 4), offset: try number(header + 8, bytes: 8),
            address: try number(header + 16, bytes: 8), size: try number(header + 32, bytes: 8)
        )
    }
    guard let dynamic = segments.first(where: { $0.type == 2 }) else { throw ELFError(path: path) }  // PT_DYNAMIC
    let entries = try stride(from: dynamic.offset, to: dynamic.offset + dynamic.size, by: 16).map { offset in
        (tag: try number(offset, bytes: 8), value: try number(offset + 8, bytes: 8))
    }
    guard let strings = entries.first(where: { $0.tag == 5 })?.value,  // DT_STRTAB: where it is in memory
        let home = segments.first(where: {
            $0.type == 1 && ($0.address..<$0.address + $0.size).contains(strings)  // PT_LOAD
        })
    else { throw ELFError(path: path) }
    return try entries.filter { $0.tag == 1 }.map { try text(strings - home.address + home.offset + $0.value) }
}
