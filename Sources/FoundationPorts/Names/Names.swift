// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Apple's names for types that Foundation on Linux spells otherwise. A file that imports CoreFoundation, too, finds two of
// each: see <doc:BringYourMacProgram>.

public import Foundation

/// `CFString`, as Swift on Apple's systems has it: `name as CFString` is `name as NSString`.
public typealias CFString = NSString

/// `CFData`, as Swift on Apple's systems has it: `data as CFData` is `data as NSData`.
public typealias CFData = NSData

/// What a local port calls with each message: the port, the message's number, its data (valid during the call), and the
/// info of the port's context. What it returns is the reply; nil is an empty one. It is released by the system.
public typealias CFMessagePortCallBack =
    @Sendable (CFMessagePort?, Int32, CFData?, UnsafeMutableRawPointer?) ->
    Unmanaged<CFData>?

/// C's `Boolean`, one byte.
@frozen
public struct DarwinBoolean: ExpressibleByBooleanLiteral, Hashable, Sendable, CustomStringConvertible {
    private var value: UInt8

    /// Makes one from Swift's.
    public init(_ value: Bool) { self.value = value ? 1 : 0 }
    /// Makes one from `true` or `false`.
    public init(booleanLiteral value: Bool) { self.init(value) }

    /// Swift's.
    public var boolValue: Bool { value != 0 }
    /// `true` or `false`.
    public var description: String { boolValue.description }
}

/// A mode of a CoreFoundation run loop.
public struct CFRunLoopMode: RawRepresentable, Hashable, Sendable {
    // Sendable: an NSString that is not changed.
    /// The mode's name.
    public nonisolated(unsafe) let rawValue: CFString

    /// Makes a mode of a name.
    public init(rawValue: CFString) { self.rawValue = rawValue }
    /// Makes a mode of a name.
    public init(_ rawValue: CFString) { self.rawValue = rawValue }

    /// `kCFRunLoopDefaultMode`.
    public static let defaultMode: CFRunLoopMode! = CFRunLoopMode(rawValue: "kCFRunLoopDefaultMode")
    /// `kCFRunLoopCommonModes`.
    public static let commonModes: CFRunLoopMode! = CFRunLoopMode(rawValue: "kCFRunLoopCommonModes")
}

/// Calls `body`: Swift on Linux has no pools.
@discardableResult
public func autoreleasepool<Result>(invoking body: () throws -> Result) rethrows -> Result { try body() }

/// The number with which Mach's functions succeed, and those of CFMessagePort.
public let KERN_SUCCESS: Int32 = 0
