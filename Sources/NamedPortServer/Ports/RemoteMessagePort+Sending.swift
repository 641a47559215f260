// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort

extension RemoteMessagePort {
    /// Sends a message that expects no reply. `CFMessagePortSendRequest` without a reply mode.
    ///
    /// - Parameters:
    ///   - message: the message. It stays the caller's.
    ///   - sendLimit: how long to wait for room in the port's queue; zero or less never waits.
    /// - Throws: ``/MessagePort/PortError/Code/invalidPort`` after ``invalidate()``; otherwise as
    ///   `SendRight.send(_:within:)`.
    public func send(_ message: MachMessage, sendLimit: Duration = .seconds(10)) throws(PortError) {
        do throws(PortError) {
            try checkValid()
            try right.send(message, within: sendLimit)
        } catch {
            throw error.at(name: name)
        }
    }

    /// Sends a message and waits for its reply, running the current thread's run loop in a mode meanwhile.
    /// `CFMessagePortSendRequest` with a reply mode.
    ///
    /// - Parameters:
    ///   - message: the request. It stays the caller's.
    ///   - sendLimit: how long to wait for room in the port's queue.
    ///   - replyLimit: how long to wait for the reply, from the moment at which the message was sent.
    ///   - mode: the mode to run; in the private one nothing else runs. ``/RunLoopCore/RunLoopMode/common`` traps.
    /// - Returns: the reply; empty when the port's handler returned nothing.
    /// - Throws: ``/MessagePort/PortError/Code/invalidPort`` after ``invalidate()``,
    ///   ``/MessagePort/PortError/Code/peerDied`` when that is called during the wait; otherwise as
    ///   ``/MessagePort/SendRight/request(_:sendLimit:replyLimit:mode:)``.
    @discardableResult
    public func request(
        _ message: MachMessage, sendLimit: Duration = .seconds(10), replyLimit: Duration = .seconds(10),
        mode: RunLoopMode = .portReply
    ) throws(PortError) -> MachMessage {
        do throws(PortError) {
            try checkValid()
            return try right.request(
                message, sendLimit: sendLimit, replyLimit: replyLimit, mode: mode, in: requests)
        } catch {
            throw error.at(name: name)
        }
    }

    /// Sends a message and suspends the task until its reply comes. No thread waits, and no run loop runs.
    ///
    /// - Parameters:
    ///   - message: the request. It stays the caller's.
    ///   - sendLimit: how long to wait for room in the port's queue.
    ///   - replyLimit: how long to wait for the reply, from the moment at which the message was sent.
    /// - Returns: the reply; empty when the port's handler returned nothing.
    /// - Throws: ``/MessagePort/PortError/Code/invalidPort`` after ``invalidate()``,
    ///   ``/MessagePort/PortError/Code/peerDied`` when that is called during the wait; otherwise as
    ///   ``/MessagePort/SendRight/request(_:sendLimit:replyLimit:)``.
    @discardableResult
    nonisolated(nonsending) public func request(
        _ message: MachMessage, sendLimit: Duration = .seconds(10), replyLimit: Duration = .seconds(10)
    ) async throws(PortError) -> MachMessage {
        do throws(PortError) {
            try checkValid()
            return try await right.request(message, sendLimit: sendLimit, replyLimit: replyLimit, in: requests)
        } catch {
            throw error.at(name: name)
        }
    }

    private func checkValid() throws(PortError) {
        if isInherited { throw PortError(.forkedProcess) }
        if isInvalid { throw PortError(.invalidPort) }
    }
}
