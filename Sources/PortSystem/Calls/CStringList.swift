// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary

/// A list of C strings that ends with a null pointer, as `execve(2)` takes it; it owns the strings.
@safe struct CStringList: ~Copyable {
    /// The list; valid as long as this value lives.
    private(set) var pointers: [UnsafeMutablePointer<CChar>?]

    /// Copies texts.
    ///
    /// - Throws: EINVAL when one holds a NUL, ENOMEM.
    init(_ texts: [String]) throws(SystemError) {
        unsafe pointers = []
        for text in texts {
            guard !text.utf8.contains(0) else { throw SystemError(EINVAL) }
            try unsafe append(strdup(text))
        }
        unsafe pointers.append(nil)
    }

    /// Copies an environment, byte for byte, and changes variables in the copy.
    ///
    /// - Parameters:
    ///   - environment: a list that ends with a null pointer.
    ///   - changes: variables to set; nil takes one out.
    /// - Throws: EINVAL when a name is empty or holds `=` or a NUL, or a value holds a NUL; ENOMEM.
    init(
        environment: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, changing changes: [String: String?]
    ) throws(SystemError) {
        unsafe pointers = []
        // A name is its bytes: as texts, two of them can be equal that are not the same.
        let changed = Set(changes.keys.map { Array($0.utf8) })
        for (name, value) in changes {
            let isName = !name.isEmpty && !name.utf8.contains(0) && !name.utf8.contains(UInt8(ascii: "="))
            guard isName, !(value ?? "").utf8.contains(0) else { throw SystemError(EINVAL) }
        }
        var index = 0
        while let entry = unsafe environment?[index] {
            index += 1
            let bytes = unsafe UnsafeRawBufferPointer(start: entry, count: strlen(entry))
            if changed.contains(unsafe Array(bytes.prefix { $0 != UInt8(ascii: "=") })) { continue }
            try unsafe append(strdup(entry))
        }
        for case (let name, let value?) in changes { try unsafe append(strdup(name + "=" + value)) }
        unsafe pointers.append(nil)
    }

    deinit {
        unsafe pointers.forEach { unsafe free($0) }
    }

    private mutating func append(_ pointer: UnsafeMutablePointer<CChar>?) throws(SystemError) {
        guard let pointer = unsafe pointer else { throw SystemError(ENOMEM) }
        unsafe pointers.append(pointer)
    }
}
