// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// CFString and CFData of CoreFoundation are NSString and NSData: the same objects. Swift on Linux does not know.

import CFoundationPorts
import CoreFoundation
import Foundation
import PortSystem

extension NSString {
    var asCoreFoundation: CoreFoundation.CFString { unsafeBitCast(self, to: CoreFoundation.CFString.self) }
}

extension CFRunLoopMode {
    /// CoreFoundation compares the name of the common modes by its pointer.
    var asCoreFoundation: CoreFoundation.CFString {
        rawValue.isEqual(to: "kCFRunLoopCommonModes") ? kCFRunLoopCommonModes : rawValue.asCoreFoundation
    }
}

extension NSData {
    /// All of it, also where it is not contiguous.
    var allBytes: [UInt8] {
        if length == 0 { return [] }
        return [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            if let address = buffer.baseAddress { getBytes(address, length: length) }
            count = length
        }
    }

    convenience init(copying bytes: [UInt8]) {
        self.init(bytes: bytes, length: bytes.count)
    }
}

extension CFMessagePort {
    /// The object's state.
    var body: PortBody {
        guard let body = fp_port_body(Unmanaged.passUnretained(self).toOpaque()) else {
            fatalError("This is no CFMessagePort of this library; pass one that CFMessagePortCreateLocal has made.")
        }
        return Unmanaged<PortBody>.fromOpaque(body).takeUnretainedValue()
    }
}

/// Writes why a call is refused to standard error, as CoreFoundation logs it.
///
/// - Parameters:
///   - text: the reason.
///   - type: what refuses it, as the program names it.
func logRefusal(_ text: String, by type: String = "CFMessagePort") {
    sysWriteToStandardError("\(type): \(text)\n")
}
