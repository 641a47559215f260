// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import RunLoopCore

extension MachPort {
    /// Asks for one notice, on a run loop, when no send right to this port is left. `MACH_NOTIFY_NO_SENDERS`.
    ///
    /// The notice comes when the last send right of this process has gone, in messages too, and the last client of
    /// another process has closed its connection; soon, when none is left already. A port that never had a sender waits
    /// for the first. What the senders sent may still wait in the queue, and can be read.
    ///
    /// The notice never comes when the port or the loop's thread ends first. Each request is answered once: ask again
    /// for the next time. The names of a port are no senders. A connection is noticed, and its end too, while the
    /// port's messages are received.
    ///
    /// A right that went to another process counts from its first use there on, which is when it connects: sending, a
    /// request, a notice, ``SendRight/isDead``. Until then it is no sender. So the notice may come while another
    /// process holds a right that it has not used; that right still works while the port is valid. A port whose
    /// handed-out rights are never used gets no notice. Treat the notice as leave to clean up, not as proof that no
    /// sender will come.
    ///
    /// - Parameters:
    ///   - loop: the loop on which to call the handler.
    ///   - mode: the mode in which to call it.
    ///   - handler: called once on the loop's thread.
    /// - Returns: the request, to withdraw it.
    /// - Throws: ``PortError/Code/invalidPort``; ``PortError/Code/forkedProcess``.
    @discardableResult
    public func notifyWhenNoSenders(
        on loop: ThreadRunLoop, in mode: RunLoopMode = .common, _ handler: @escaping @Sendable () -> Void
    ) throws(PortError) -> NoticeRequest {
        try core.checkProcess()  // before the loop's lock is acquired
        let request = NoticeRequest()
        let notice = LoopNotification<Void>(on: loop, in: mode) { _ in if request.begin() { handler() } }
        do throws(PortError) {
            try core.watchSenders(notice)
        } catch {
            notice.cancel()
            throw error
        }
        request.setWithdrawal { [weak notice] in notice?.cancel() }
        return request
    }

    /// Sets what is called once on a run loop when the port becomes invalid.
    ///
    /// It replaces what ``setInvalidationHandler(_:)`` has set, and is replaced by it. Never called when the loop's
    /// thread ends first.
    ///
    /// - Parameters:
    ///   - loop: the loop on which to call the handler.
    ///   - mode: the mode in which to call it.
    ///   - handler: called once on the loop's thread; soon, when the port is invalid already.
    public func setInvalidationHandler(
        on loop: ThreadRunLoop, in mode: RunLoopMode = .common, _ handler: @escaping @Sendable () -> Void
    ) {
        if core.isInherited { return }
        let notice = LoopNotification<Void>(on: loop, in: mode) { _ in handler() }
        setInvalidationHandler { notice.tell() }
    }
}
