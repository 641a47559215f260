// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CoreFoundation
import Foundation

/// A CFRunLoopSource whose routines are closures. Retain it as long as its source may be performed.
final class ClosureSource {
    private let port: CInt
    private let perform: () -> Void
    private let cancel: () -> Void
    private var made: CFRunLoopSource?

    /// Makes a version-1 source for a descriptor, or a version-0 source when there is none.
    init(port: CInt? = nil, perform: @escaping () -> Void = {}, cancel: @escaping () -> Void = {}) {
        self.port = port ?? -1
        self.perform = perform
        self.cancel = cancel
        made = port == nil ? custom() : portBased()
    }

    private static func at(_ info: UnsafeMutableRawPointer?) -> ClosureSource? {
        info.map { Unmanaged<ClosureSource>.fromOpaque($0).takeUnretainedValue() }
    }

    private func custom() -> CFRunLoopSource? {
        var context = CFRunLoopSourceContext()
        context.info = Unmanaged.passUnretained(self).toOpaque()
        context.perform = { ClosureSource.at($0)?.perform() }
        context.cancel = { info, _, _ in ClosureSource.at(info)?.cancel() }
        return CFRunLoopSourceCreate(nil, 0, &context)
    }

    private func portBased() -> CFRunLoopSource? {
        var context = CFRunLoopSourceContext1()
        context.info = Unmanaged.passUnretained(self).toOpaque()
        context.getPort = { ClosureSource.at($0)?.port ?? -1 }
        context.perform = { ClosureSource.at($0)?.perform() }
        return context.makeSource()
    }

    func add(to loop: CFRunLoop, _ mode: Mode = .default) {
        made.map { CFRunLoopAddSource(loop, $0, mode.name) }
    }

    func remove(from loop: CFRunLoop, _ mode: Mode = .default) {
        made.map { CFRunLoopRemoveSource(loop, $0, mode.name) }
    }

    func isIn(_ loop: CFRunLoop, _ mode: Mode = .default) -> Bool {
        made.map { CFRunLoopContainsSource(loop, $0, mode.name) } ?? false
    }

    func invalidate() {
        made.map { CFRunLoopSourceInvalidate($0) }
    }
}

/// An object of CoreFoundation that is passed to another thread.
///
/// @unchecked: the functions of a CFRunLoop that tests call on other threads may be called on any.
struct Shared<Value>: @unchecked Sendable {
    let value: Value
}

/// Runs the present thread's CFRunLoop.
@discardableResult
func runCoreFoundation(_ mode: Mode = .default, _ seconds: CFTimeInterval = 0, returns: Bool = false) -> Outcome? {
    Outcome(rawValue: Int(CFRunLoopRunInMode(mode.name, seconds, returns).rawValue))
}

extension CFRunLoopSourceContext1 {
    /// Makes a source of version 1, which has a port.
    func makeSource(order: CFIndex = 0) -> CFRunLoopSource? {
        var context = self
        context.version = 1
        return withUnsafeMutablePointer(to: &context) { context in
            context.withMemoryRebound(to: CFRunLoopSourceContext.self, capacity: 1) {
                CFRunLoopSourceCreate(nil, order, $0)
            }
        }
    }
}
