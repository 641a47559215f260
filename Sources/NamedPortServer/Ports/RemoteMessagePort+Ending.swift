// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort
import Synchronization

/// The handler for a remote port's end, with its loop. The thread that notifies removes it first, so it is called once.
final class EndWatch: Sendable {
    let loop: ThreadRunLoop  // immutable
    let mode: RunLoopMode  // immutable
    private let handler: @Sendable () -> Void  // immutable

    init(_ loop: ThreadRunLoop, _ mode: RunLoopMode, _ handler: @escaping @Sendable () -> Void) {
        self.loop = loop
        self.mode = mode
        self.handler = handler
    }

    /// Calls the handler on its loop: immediately, if that is the current thread's.
    func tell() {
        if loop.isCurrent { return handler() }
        loop.perform(in: [mode], name: "port end", handler)
    }
}

extension RemoteMessagePort {
    /// Sets the handler that is called once when the port is gone, or this object is invalidated.
    /// `CFMessagePortSetInvalidationCallBack`.
    ///
    /// It is called on the loop's thread and nowhere else: at once when ``invalidate()`` is called there, otherwise as
    /// a block. It is never called when the loop's thread ends first. It replaces the handler set before, which is then
    /// never called.
    ///
    /// - Parameters:
    ///   - loop: the loop on which to call the handler.
    ///   - mode: the mode in which to notice that the port is gone.
    ///   - handler: called at once, or soon, when the object is invalid or the port is gone already; nil for nothing.
    /// - Throws: as ``/MessagePort/SendRight/notifyWhenDead(on:in:_:)``. Then no handler is called at the port's end.
    public func setInvalidationHandler(
        on loop: ThreadRunLoop, in mode: RunLoopMode = .common, _ handler: (@Sendable () -> Void)?
    ) throws(PortError) {
        if isInherited { throw PortError(.forkedProcess) }
        let watch = handler.map { EndWatch(loop, mode, $0) }
        let (isInvalid, old) = state.withLock { state in
            let old = state.takeWatch()
            if !state.isInvalid { state.watch = watch }
            return (state.isInvalid, old)
        }
        old.request?.cancel()
        guard let watch else { return }
        if isInvalid { return watch.tell() }
        do throws(PortError) {
            let request = try right.notifyWhenDead(on: loop, in: mode) { [weak self] in self?.portDidEnd(watch) }
            let isWanted = state.withLock { state in
                if state.watch === watch { state.request = request }
                return state.watch === watch
            }
            if !isWanted { request.cancel() }  // it was replaced, or notified, meanwhile
        } catch {
            if take(watch) { throw error }
        }
    }

    /// Sets the handler that is called once when the port is gone, or this object is invalidated, on the current
    /// thread's run loop.
    ///
    /// See ``setInvalidationHandler(on:in:_:)``.
    ///
    /// - Parameters:
    ///   - mode: the mode in which to notice that the port is gone.
    ///   - handler: called at once, or soon, when the object is invalid or the port is gone already; nil for nothing.
    /// - Throws: as ``/MessagePort/SendRight/notifyWhenDead(on:in:_:)``.
    @available(*, noasync, message: "A task has no thread of its own: use `setInvalidationHandler(on:)`.")
    public func setInvalidationHandler(
        in mode: RunLoopMode = .common, _ handler: (@Sendable () -> Void)?
    ) throws(PortError) {
        try setInvalidationHandler(on: .current, in: mode, handler)
    }

    /// Whether there is a handler to call at the end. `CFMessagePortGetInvalidationCallBack`.
    public var hasInvalidationHandler: Bool { !isInherited && state.withLock { $0.watch != nil } }

    /// Ends the use of this object. The port itself, and other objects for it, go on. `CFMessagePortInvalidate`.
    ///
    /// Requests that wait for their replies, on any thread or task, end at once with
    /// ``/MessagePort/PortError/Code/peerDied``, and the receiver learns of it
    /// (``/MessagePort/MachMessage/isCancelled``). A request that waits for room goes on waiting, and ends with the
    /// same error once its message was sent. In a forked child nothing happens: the object belongs to its parent.
    public func invalidate() {
        if isInherited { return }
        let old = state.withLock { state in
            state.isInvalid = true
            return state.takeWatch()
        }
        old.request?.cancel()
        requests.close(PortError(.peerDied))
        old.watch?.tell()
    }

    /// Called on the watch's loop when the port is gone.
    private func portDidEnd(_ watch: EndWatch) {
        if take(watch, isInvalid: true) { watch.tell() }
    }

    private func take(_ watch: EndWatch, isInvalid: Bool = false) -> Bool {
        state.withLock { state in
            guard state.watch === watch else { return false }
            _ = state.takeWatch()
            if isInvalid { state.isInvalid = true }
            return true
        }
    }
}

extension RemoteMessagePort.State {
    /// Removes the watch of the end, so that it is called once.
    mutating func takeWatch() -> (watch: EndWatch?, request: NoticeRequest?) {
        (watch.take(), request.take())
    }
}
