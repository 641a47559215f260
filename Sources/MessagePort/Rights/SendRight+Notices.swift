// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import RunLoopCore

extension SendRight {
    /// Asks for one notice, on a run loop, when a message may be sent: for use after ``trySend(_:)`` found the queue
    /// full. `MACH_NOTIFY_SEND_POSSIBLE`.
    ///
    /// Each request is answered exactly once: soon when there is room already, and when the port is gone. It is dropped
    /// when the loop's thread ends. It reserves no slot: when several wait for room, all are notified, and one that
    /// finds the queue full again asks again. For a port of another process, room means room in the connection: its
    /// queue may still be full then, and the message waits in the kernel. While the notice waits there, it uses one
    /// descriptor, and retains the connection.
    ///
    /// - Parameters:
    ///   - loop: the loop on which to call the handler.
    ///   - mode: the mode in which to call it.
    ///   - handler: called once on the loop's thread.
    /// - Returns: the request, to withdraw it.
    /// - Throws: ``PortError/Code/descriptorLimit``, ``PortError/Code/systemCallFailed``: nothing is watched then.
    @discardableResult
    public func notifyWhenSendPossible(
        on loop: ThreadRunLoop, in mode: RunLoopMode = .common,
        _ handler: @escaping @Sendable (SendPossibility) -> Void
    ) throws(PortError) -> NoticeRequest {
        try destination.checkProcess()  // before the loop's lock is acquired
        let request = NoticeRequest()
        let notice = LoopNotification<SendPossibility>(on: loop, in: mode) { if request.begin() { handler($0) } }
        do throws(PortError) {
            try destination.watchRoom(notice)
        } catch {
            notice.cancel()
            throw error
        }
        request.setWithdrawal { [weak notice] in notice?.cancel() }
        return request
    }
}
