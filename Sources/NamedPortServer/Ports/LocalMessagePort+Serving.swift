// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort

extension LocalMessagePort {
    /// Makes a run loop call the handler for this port's messages.
    ///
    /// - Parameters:
    ///   - loop: the loop.
    ///   - mode: a mode of it, or ``/RunLoopCore/RunLoopMode/common``.
    /// - Throws: as ``/MessagePort/MachPort/schedule(on:in:)``.
    public func schedule(on loop: ThreadRunLoop, in mode: RunLoopMode = .default) throws(PortError) {
        try port.schedule(on: loop, in: mode)
    }

    /// Removes the port from a mode of a run loop. Messages stay in the queue.
    ///
    /// - Parameters:
    ///   - loop: the loop.
    ///   - mode: the mode that it was scheduled in.
    public func unschedule(from loop: ThreadRunLoop, in mode: RunLoopMode = .default) {
        port.unschedule(from: loop, in: mode)
    }

    /// The source with which a run loop receives from this port. `CFMessagePortCreateRunLoopSource`.
    ///
    /// - Parameter order: its order among sources that are ready at the same time, when this call makes it.
    /// - Returns: the source; the same each time.
    /// - Throws: as ``/MessagePort/MachPort/runLoopSource(order:)``.
    public func runLoopSource(order: Int = 0) throws(PortError) -> RunLoopSource {
        try port.runLoopSource(order: order)
    }

    /// Has the handler called in blocks, for example of a dispatch queue: `setDispatcher { queue.async(execute: $0) }`.
    /// `CFMessagePortSetDispatchQueue`.
    ///
    /// - Parameter dispatcher: called for each block; nil for none.
    /// - Throws: as ``/MessagePort/MachPort/setDispatcher(_:)``.
    public func setDispatcher(_ dispatcher: MachPort.Dispatcher?) throws(PortError) {
        try port.setDispatcher(dispatcher)
    }

    /// Sets the handler that is called once when the port becomes invalid, on the thread that invalidates it.
    /// `CFMessagePortSetInvalidationCallBack`.
    ///
    /// - Parameter handler: called at once when the port is invalid already; nil for nothing.
    public func setInvalidationHandler(_ handler: (@Sendable () -> Void)?) {
        port.setInvalidationHandler(handler)
    }

    /// Sets the handler that is called once on a run loop when the port becomes invalid.
    ///
    /// - Parameters:
    ///   - loop: the loop on which to call the handler.
    ///   - mode: the mode in which to call the handler.
    ///   - handler: called once on the loop's thread; soon, when the port is invalid already.
    public func setInvalidationHandler(
        on loop: ThreadRunLoop, in mode: RunLoopMode = .common, _ handler: @escaping @Sendable () -> Void
    ) {
        port.setInvalidationHandler(on: loop, in: mode, handler)
    }

    /// Whether there is a handler to call when the port becomes invalid. `CFMessagePortGetInvalidationCallBack`.
    public var hasInvalidationHandler: Bool { port.hasInvalidationHandler }
}
