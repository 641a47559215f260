// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import CoreFoundation

// On Apple's systems these types are Hashable by identity.

// @unchecked Sendable: CoreFoundation's own locks protect them; their functions may be called on any thread.
extension CFMessagePort: @retroactive Hashable, @unchecked @retroactive Sendable {
    /// Whether they are one object.
    public static func == (left: CFMessagePort, right: CFMessagePort) -> Bool { left === right }
    /// Hashes the object's identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

// @unchecked Sendable: as above.
extension CFRunLoop: @retroactive Hashable, @unchecked @retroactive Sendable {
    /// Whether they are one object.
    public static func == (left: CFRunLoop, right: CFRunLoop) -> Bool { left === right }
    /// Hashes the object's identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

// @unchecked Sendable: as above.
extension CFRunLoopSource: @retroactive Hashable, @unchecked @retroactive Sendable {
    /// Whether they are one object.
    public static func == (left: CFRunLoopSource, right: CFRunLoopSource) -> Bool { left === right }
    /// Hashes the object's identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

// @unchecked Sendable: as above.
extension CFRunLoopTimer: @retroactive Hashable, @unchecked @retroactive Sendable {
    /// Whether they are one object.
    public static func == (left: CFRunLoopTimer, right: CFRunLoopTimer) -> Bool { left === right }
    /// Hashes the object's identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

// @unchecked Sendable: as above.
extension CFRunLoopObserver: @retroactive Hashable, @unchecked @retroactive Sendable {
    /// Whether they are one object.
    public static func == (left: CFRunLoopObserver, right: CFRunLoopObserver) -> Bool { left === right }
    /// Hashes the object's identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
