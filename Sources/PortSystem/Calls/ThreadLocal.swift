// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary

/// One object per thread, released when its thread ends.
///
/// Instances are never released: make them static.
package final class ThreadLocal<Value: AnyObject>: Sendable {
    private let key: pthread_key_t  // immutable
    private let threadDidEnd: (@Sendable (Value) -> Void)?  // immutable

    /// Makes a slot.
    ///
    /// - Parameter threadDidEnd: called on the ending thread with the thread's object, which is still the slot's value
    ///   during the call and is released after it.
    package init(threadDidEnd: (@Sendable (Value) -> Void)? = nil) {
        var key = pthread_key_t()
        let result = unsafe pthread_key_create(&key) { pointer in
            guard let pointer = unsafe pointer else { return }
            // SAFETY: the slot holds only the object that `value`'s setter retained.
            unsafe Unmanaged<Slot>.fromOpaque(pointer).takeUnretainedValue().threadDidEnd()
        }
        if result != 0 {
            fatalError("This process has no thread-local key left (pthread_key_create gave \(result)). Use fewer.")
        }
        self.key = key
        self.threadDidEnd = threadDidEnd
    }

    /// The calling thread's object.
    package var value: Value? {
        get {
            guard let pointer = unsafe pthread_getspecific(key) else { return nil }
            // SAFETY: only the setter below fills the slot, with a Value.
            return unsafe unsafeDowncast(
                Unmanaged<Slot>.fromOpaque(pointer).takeUnretainedValue().value, to: Value.self)
        }
        set {
            let old = unsafe pthread_getspecific(key)
            defer { if let old = unsafe old { unsafe Unmanaged<Slot>.fromOpaque(old).release() } }
            guard let newValue else { return unsafe store(nil) }
            let slot = Slot(newValue) { [self] slot in
                // The C library has cleared the slot before this call; the object must be found during `threadDidEnd`.
                unsafe store(Unmanaged.passUnretained(slot).toOpaque())
                threadDidEnd?(newValue)
                value = nil
            }
            unsafe store(Unmanaged.passRetained(slot).toOpaque())
        }
    }

    private func store(_ pointer: UnsafeMutableRawPointer?) {
        let result = unsafe pthread_setspecific(key, pointer)
        if result != 0 {
            fatalError("A thread-local value cannot be stored (pthread_setspecific gave \(result)). Free memory.")
        }
    }
}

/// The object to which a thread's slot points, retained.
private final class Slot {
    let value: AnyObject
    private let end: (Slot) -> Void

    init(_ value: AnyObject, end: @escaping (Slot) -> Void) {
        self.value = value
        self.end = end
    }

    func threadDidEnd() {
        end(self)
    }
}
