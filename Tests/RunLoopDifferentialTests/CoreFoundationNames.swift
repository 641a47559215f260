// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// What Swift needs to talk to CoreFoundation on Linux, where nothing is bridged.

import CoreFoundation
import Foundation

extension CFString {
    /// Makes a string of CoreFoundation.
    static func of(_ text: String) -> CFString {
        CFStringCreateWithCString(nil, text, CFStringBuiltInEncodings.UTF8.rawValue)
    }
}

extension CFArray {
    /// Makes an array of CoreFoundation, which keeps the strings.
    static func of(_ strings: [CFString]) -> CFArray {
        var values = strings.map { Optional(UnsafeRawPointer(Unmanaged.passUnretained($0).toOpaque())) }
        return withExtendedLifetime(strings) {
            withUnsafePointer(to: kCFTypeArrayCallBacks) { CFArrayCreate(nil, &values, strings.count, $0) }
        }
    }
}

extension Mode {
    /// The mode's name. The common modes are recognised by the identity of their object, so that object is their name
    /// here.
    var name: CFString {
        switch self {
        case .default: kCFRunLoopDefaultMode
        case .common: kCFRunLoopCommonModes
        case .alpha, .beta, .ghost: CFString.of(rawValue)
        }
    }

    init(_ name: CFString) {
        self = Mode.allCases.first { CFEqual($0.name, name) } ?? .ghost
    }
}
