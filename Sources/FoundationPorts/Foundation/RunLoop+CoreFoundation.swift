// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import CoreFoundation
public import Foundation
import Synchronization

extension RunLoop.Mode {
    var coreFoundationMode: CFRunLoopMode { CFRunLoopMode(rawValue: rawValue as NSString) }
}

extension RunLoop {
    /// CoreFoundation's loop. As on Apple's systems, it may be given to the functions of `CFRunLoop` on any thread.
    public func getCFRunLoop() -> CFRunLoop {
        guard let loop = coreFoundationLoop() else {
            // Only of another thread's loop, and only with a later Foundation.
            fatalError("This Foundation hides other threads' run loops: call getCFRunLoop() on the loop's thread.")
        }
        return loop
    }

    /// The property in which Foundation has CoreFoundation's loop.
    package static let storageLabel = "_cfRunLoopStorage"

    /// CoreFoundation's loop; nil for that of another thread, when Foundation no longer has the property.
    ///
    /// Foundation has no access to it but by reflection.
    package func coreFoundationLoop(storedAs label: String = storageLabel) -> CFRunLoop? {
        if self === RunLoop.main { return CFRunLoopGetMain() }
        if isCurrent { return CFRunLoopGetCurrent() }
        return reflectedLoop(storedAs: label)
    }

    private var isCurrent: Bool { self === RunLoop.current }

    package func reflectedLoop(storedAs label: String = storageLabel) -> CFRunLoop? {
        guard let storage = Mirror(reflecting: self).children.first(where: { $0.label == label })?.value else {
            return nil
        }
        let object = storage as AnyObject
        if CFGetTypeID(object) != CFRunLoopGetTypeID() { return nil }
        // A checked cast to a class of CoreFoundation's aborts.
        return Unmanaged<CFRunLoop>.fromOpaque(Unmanaged.passUnretained(object).toOpaque()).takeUnretainedValue()
    }

    /// Calls a closure with CoreFoundation's loop: now, or, when it is not known, on its thread, soon after it has begun to
    /// run in the mode.
    func onCoreFoundationLoop(_ mode: Mode, storedAs label: String, _ body: @escaping @Sendable (CFRunLoop) -> Void) {
        if let loop = coreFoundationLoop(storedAs: label) { return body(loop) }
        // Unlike a block, a timer wakes the loop. Foundation never releases the timer: it must not retain the port.
        let once = Mutex<(@Sendable (CFRunLoop) -> Void)?>(body)
        add(
            Timer(fire: .distantPast, interval: 0, repeats: false) { _ in
                once.withLock { $0.take() }?(CFRunLoopGetCurrent())
            }, forMode: mode)
    }
}
