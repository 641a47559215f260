// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CoreFoundation
import Foundation
import PortSystem
import Synchronization

/// How a port is served on a loop of CoreFoundation's: a descriptor that is readable while messages wait, and what handles
/// one message. Retained by the run-loop source, and retains what has to live as long.
final class PortSource: Sendable {
    let descriptor: Int32  // immutable
    /// Handles one message, if one waits. Called on the thread of a loop, or of a queue.
    let handleOne: @Sendable () -> Void  // immutable

    /// Whether it was added to the loop of a thread that had the main queue: the thread handles messages only with it.
    let isOnMainQueueOnly = Atomic<Bool>(false)

    init(_ descriptor: Int32, handlingOne handleOne: @escaping @Sendable () -> Void) {
        (self.descriptor, self.handleOne) = (descriptor, handleOne)
    }

    /// A source for run loops that retains this object.
    func makeRunLoopSource(order: CFIndex) -> CFRunLoopSource? {
        var context = CFRunLoopSourceContext1()
        context.version = 1
        context.info = Unmanaged.passUnretained(self).toOpaque()
        context.retain = { info in
            guard let info else { return nil }
            return UnsafeRawPointer(Unmanaged<PortSource>.fromOpaque(info).retain().toOpaque())
        }
        context.release = { info in
            guard let info else { return }
            // The source has ended, also by CoreFoundation's own functions.
            MainQueueService.shared.remove(Unmanaged<PortSource>.fromOpaque(info).takeUnretainedValue(), mode: nil)
            Unmanaged<PortSource>.fromOpaque(info).release()
        }
        context.getPort = { info in info.map { PortSource.at($0).descriptor } ?? -1 }
        context.perform = performPortSource
        return withUnsafeMutablePointer(to: &context) { context in
            context.withMemoryRebound(to: CFRunLoopSourceContext.self, capacity: 1) {
                CFRunLoopSourceCreate(nil, order, $0)
            }
        }
    }

    /// Invalidates a source of this library: nothing serves its port any more.
    static func end(_ source: CFRunLoopSource) {
        let port = of(source)
        // First: a thread that adds the source meanwhile finds it invalid, or has added it before the next line.
        CFRunLoopSourceInvalidate(source)
        if let port { MainQueueService.shared.remove(port, mode: nil) }
    }

    private static func at(_ info: UnsafeMutableRawPointer) -> PortSource {
        Unmanaged<PortSource>.fromOpaque(info).takeUnretainedValue()
    }

    /// What a source of this library serves; nil for another source, and for an invalid one.
    ///
    /// CoreFoundation releases it when it destroys the source, not when another thread invalidates it.
    static func of(_ source: CFRunLoopSource) -> PortSource? {
        if !CFRunLoopSourceIsValid(source) { return nil }
        var context = CFRunLoopSourceContext1()
        withUnsafeMutablePointer(to: &context) { context in
            context.withMemoryRebound(to: CFRunLoopSourceContext.self, capacity: 1) {
                // A context that says version 1 is filled as one.
                $0.pointee.version = 1
                CFRunLoopSourceGetContext(source, $0)
            }
        }
        guard context.version == 1, let info = context.info,
            unsafeBitCast(context.perform, to: UInt.self)
                == unsafeBitCast(performPortSource as @convention(c) (UnsafeMutableRawPointer?) -> Void, to: UInt.self)
        else { return nil }
        return at(info)
    }
}

private let performPortSource: @convention(c) (UnsafeMutableRawPointer?) -> Void = { info in
    guard let info else { return }
    let port = Unmanaged<PortSource>.fromOpaque(info).takeUnretainedValue()
    if port.isOnMainQueueOnly.load(ordering: .relaxed), sysThreadID() != sysProcessID(),
        !MainQueueService.shared.isOnThread
    {
        return
    }
    port.handleOne()
}
