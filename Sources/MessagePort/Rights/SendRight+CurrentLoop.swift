// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// For code that has a thread of its own: the loop is that thread's. A task names a loop.

public import RunLoopCore

extension SendRight {
    /// Asks for one notice, on the current thread's run loop, when the port is gone. See ``notifyWhenDead(on:in:_:)``.
    ///
    /// - Parameters:
    ///   - mode: the mode in which to call the handler.
    ///   - handler: called once on this thread; soon when the port is gone already.
    /// - Returns: the request, to withdraw it.
    /// - Throws: as ``notifyWhenDead(on:in:_:)``.
    @available(*, noasync, message: "A task has no thread of its own: use `notifyWhenDead(on:)`.")
    @discardableResult
    public func notifyWhenDead(
        in mode: RunLoopMode = .common, _ handler: @escaping @Sendable () -> Void
    ) throws(PortError) -> NoticeRequest {
        try notifyWhenDead(on: .current, in: mode, handler)
    }

    /// Asks for one notice, on the current thread's run loop, when there is room. See
    /// ``notifyWhenSendPossible(on:in:_:)``.
    ///
    /// - Parameters:
    ///   - mode: the mode in which to call the handler.
    ///   - handler: called once on this thread.
    /// - Returns: the request, to withdraw it.
    /// - Throws: as ``notifyWhenSendPossible(on:in:_:)``.
    @available(*, noasync, message: "A task has no thread of its own: use `notifyWhenSendPossible(on:)`.")
    @discardableResult
    public func notifyWhenSendPossible(
        in mode: RunLoopMode = .common, _ handler: @escaping @Sendable (SendPossibility) -> Void
    ) throws(PortError) -> NoticeRequest {
        try notifyWhenSendPossible(on: .current, in: mode, handler)
    }
}

extension SendOnceRight {
    /// Asks for one notice, on the current thread's run loop, when the requester no longer waits.
    ///
    /// See ``setCancellationHandler(on:in:_:)``.
    ///
    /// - Parameters:
    ///   - mode: the mode in which to call the handler.
    ///   - handler: called once on this thread.
    @available(*, noasync, message: "A task has no thread of its own: use `setCancellationHandler(on:)`.")
    public func setCancellationHandler(in mode: RunLoopMode = .common, _ handler: @escaping @Sendable () -> Void) {
        setCancellationHandler(on: .current, in: mode, handler)
    }
}

extension MachMessage {
    /// Asks for one notice, on the current thread's run loop, when the requester no longer waits for the reply.
    ///
    /// See ``setCancellationHandler(on:in:_:)``.
    ///
    /// - Parameters:
    ///   - mode: the mode in which to call the handler.
    ///   - handler: called once on this thread. It should not hold the message.
    @available(*, noasync, message: "A task has no thread of its own: use `setCancellationHandler(on:)`.")
    public func setCancellationHandler(in mode: RunLoopMode = .common, _ handler: @escaping @Sendable () -> Void) {
        setCancellationHandler(on: .current, in: mode, handler)
    }
}
