// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// For code that has a thread of its own: the loop is that thread's. Code in tasks names a loop instead.

public import MessagePort

extension LocalMessagePort {
    /// Makes the current thread's run loop call the handler for this port's messages. See ``schedule(on:in:)``.
    ///
    /// - Parameter mode: a mode of the loop, or ``/RunLoopCore/RunLoopMode/common``.
    /// - Throws: as ``/MessagePort/MachPort/schedule(on:in:)``.
    @available(*, noasync, message: "A task has no thread of its own: use `schedule(on:)`.")
    public func schedule(in mode: RunLoopMode = .default) throws(PortError) {
        try schedule(on: .current, in: mode)
    }

    /// Removes the port from a mode of the current thread's run loop. See ``unschedule(from:in:)``.
    ///
    /// - Parameter mode: the mode that it was scheduled in.
    @available(*, noasync, message: "A task has no thread of its own: use `unschedule(from:)`.")
    public func unschedule(in mode: RunLoopMode = .default) {
        unschedule(from: .current, in: mode)
    }
}
