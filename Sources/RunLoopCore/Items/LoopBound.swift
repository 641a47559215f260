// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A box for a value that belongs to a loop's thread: any thread may hold it, but only that thread may open it.
///
/// Handlers of sources, timers and observers are `@Sendable`, so they cannot hold state of other kinds. They may hold
/// it in such a box. The box is shared: copies hold the same value. The value is released with the last copy, which may
/// be on another thread; clear it on the loop's thread when that matters.
///
/// - Important: Thread safety: loop thread only, traps elsewhere; the box itself may be copied and dropped anywhere.
public struct LoopBound<Value>: Sendable {
    // @unchecked: the value is read and written on the loop's thread only, which `checked()` enforces.
    private final class Box: @unchecked Sendable {
        var value: Value  // loop thread
        let loop: ThreadRunLoop  // immutable

        init(_ value: Value, _ loop: ThreadRunLoop) {
            self.value = value
            self.loop = loop
        }

        func checked() -> Box {
            loop.preconditionOnLoop("Reading or changing a loop-bound value")
            return self
        }
    }

    private let box: Box

    /// Puts a value into a box that belongs to the calling thread's loop.
    ///
    /// - Parameter value: the value.
    public init(_ value: Value) {
        box = Box(value, .current)
    }

    /// The loop on whose thread the value may be used.
    public var loop: ThreadRunLoop { box.loop }

    /// The value.
    public var value: Value {
        get { box.checked().value }
        nonmutating set { box.checked().value = newValue }
        nonmutating _modify { yield &box.checked().value }
    }
}
