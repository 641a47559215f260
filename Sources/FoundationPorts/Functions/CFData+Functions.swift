// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import CoreFoundation
public import Foundation

// Those functions of CFData.h that clients of ports use, on `NSData`.

/// How many bytes the data has; 0 for nil.
@discardableResult
public func CFDataGetLength(_ data: CFData!) -> CFIndex { data?.length ?? 0 }

/// The bytes, valid as long as the data is; nil for nil.
@discardableResult
public func CFDataGetBytePtr(_ data: CFData!) -> UnsafePointer<UInt8>! {
    guard let data else { return nil }
    return CoreFoundation.CFDataGetBytePtr(unsafeBitCast(data, to: CoreFoundation.CFData.self))
}

/// Data with a copy of bytes.
@discardableResult @_disfavoredOverload
public func CFDataCreate(_ allocator: CFAllocator!, _ bytes: UnsafePointer<UInt8>!, _ length: CFIndex) -> CFData! {
    guard let data = CoreFoundation.CFDataCreate(allocator, bytes, length) else { return nil }
    return unsafeBitCast(data, to: NSData.self)
}

/// Data with a copy of bytes.
@discardableResult
public func CFDataCreate(_ allocator: CFAllocator!, _ bytes: UnsafePointer<UInt8>, _ length: CFIndex) -> CFData! {
    let bytes: UnsafePointer<UInt8>! = bytes
    return CFDataCreate(allocator, bytes, length)
}
