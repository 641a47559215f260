// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import RunLoopCore

extension SendRight {
    /// Where what is sent over a right goes. A plain right leads to one port and is never interrupted.
    public enum State: Hashable, Sendable {
        /// To a port that is not known to be gone.
        case connected
        /// To the next port that gets the right's name (`PortNameServer.makeSendRight(reconnectingTo:)`): the last one
        /// has ended for this reason. Nil before the first one was found, and until the reason is known.
        case interrupted(PortEndReason?)
        /// Nowhere, for good, for this reason.
        case invalid(PortEndReason)
    }

    /// Asks where what is sent goes now. Never waits.
    ///
    /// - Returns: the state: of a right to a name what is known, of a plain right as ``isDead`` asks for it.
    public func state() -> State { destination.state() }

    /// Asks for one notice, on a run loop, when the right has another state than the one that is known.
    ///
    /// To learn of each change, ask again in the handler, from the state that it got. While the notice waits for the
    /// next owner of a right's name, the name is searched for, and the owner connected to; but a supervisor is
    /// asked to start the owner only when something is to be sent. Changes that come between two requests are combined.
    ///
    /// - Parameters:
    ///   - state: the state that is known.
    ///   - loop: the loop on which to call the handler.
    ///   - mode: the mode in which to call it.
    ///   - handler: called once on the loop's thread with the new state; soon when it differs already.
    /// - Returns: the request, to withdraw it.
    /// - Throws: as ``notifyWhenDead(on:in:_:)``; for a right to a name why the search for the next owner fails at once,
    ///   such as ``PortError/Code/watchLimit``. A search that fails later is repeated.
    @discardableResult
    public func notifyWhenStateChanges(
        from state: State, on loop: ThreadRunLoop, in mode: RunLoopMode = .common,
        _ handler: @escaping @Sendable (State) -> Void
    ) throws(PortError) -> NoticeRequest {
        try destination.checkProcess()  // before the loop's lock is acquired
        let request = NoticeRequest()
        let notice = LoopNotification<State>(on: loop, in: mode) { if request.begin() { handler($0) } }
        do throws(PortError) {
            request.setCancellation(try destination.awaitChange(notice, from: state))
        } catch {
            notice.cancel()
            throw error
        }
        return request
    }
}
