// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary

/// An array of C strings that ends with a null pointer, for `execve(2)`; it owns the strings.
@safe struct CStringList: ~Copyable {
    /// The array; valid as long as this value lives.
    private(set) var pointers: [UnsafeMutablePointer<CChar>?]

    /// Copies strings.
    ///
    /// - Throws: EINVAL when one contains a NUL, ENOMEM.
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
    ///   - environment: an array that ends with a null pointer.
    ///   - changes: variables to set; nil removes one.
    /// - Throws: EINVAL when a name is empty or contains `=` or a NUL, or a value contains a NUL; ENOMEM.
    init(
        environment: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, changing changes: [String: String?]
    ) throws(SystemError) {
        unsafe pointers = []
        // Names are compared as bytes: two different names can be equal as strings.
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
