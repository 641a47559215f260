// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// What must hold for every sequence of bytes that is read as a name, as a name's file name, or as its record.
public enum NameFuzzing {
    /// Traps when one of the promises of Docs/WireFormat.md does not hold for the bytes.
    public static func check(_ bytes: [UInt8]) {
        checkFileName(bytes)
        checkName(bytes)
        if let record = NameRecord(contents: bytes) { precondition(record.contents == bytes, "a record has one form") }
    }

    private static func checkFileName(_ bytes: [UInt8]) {
        guard let fileName = String(validating: bytes, as: UTF8.self), let name = PortName(fileName: fileName) else {
            return
        }
        precondition(name.fileName.utf8.elementsEqual(bytes), "a name has one file name")
    }

    private static func checkName(_ bytes: [UInt8]) {
        guard let string = String(validating: bytes, as: UTF8.self) else { return }
        guard let name = try? PortName(string) else {
            return precondition(
                bytes.isEmpty || bytes.count > PortName.limit || bytes.contains(0), "a good name is refused")
        }
        let fileName = name.fileName
        precondition(
            fileName.utf8.count <= 255 && !fileName.utf8.contains(UInt8(ascii: "/")), "no file can have the name")
        precondition(!fileName.hasPrefix("."), "a file name is hidden, or a directory's")
        precondition(PortName(fileName: fileName) == name, "a file name does not lead back to its name")
    }
}
