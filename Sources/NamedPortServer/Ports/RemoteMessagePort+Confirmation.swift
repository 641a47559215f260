// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort
public import RunLoopCore

extension RemoteMessagePort {
    /// Sends a message that expects no reply, and waits until it is queued, taken, or handled: the last is
    /// `CFMessagePortSendRequest` with a reply mode, where the callback returns no data.
    ///
    /// - Parameters:
    ///   - message: the message. It stays the caller's.
    ///   - confirmation: how far the message has got when the call returns.
    ///   - sendLimit: how long to wait for room in the port's queue.
    ///   - confirmationLimit: how long to wait then, from the moment at which the message was sent.
    ///   - mode: the mode to run the current loop in; in the private one nothing else runs.
    ///     ``/RunLoopCore/RunLoopMode/common`` traps.
    /// - Throws: ``/MessagePort/PortError/Code/invalidPort`` after ``invalidate()``,
    ///   ``/MessagePort/PortError/Code/peerDied`` when that is called during the wait; otherwise as
    ///   ``/MessagePort/SendRight/send(_:confirming:sendLimit:confirmationLimit:mode:)``.
    @available(*, noasync, message: "It blocks the thread. Leave `mode` out, and write `await`, to suspend the task.")
    public func send(
        _ message: MachMessage, confirming confirmation: SendConfirmation, sendLimit: Duration = .seconds(10),
        confirmationLimit: Duration = .seconds(10), mode: RunLoopMode = .portReply
    ) throws(PortError) {
        do throws(PortError) {
            try checkValid()
            try right.send(
                message, confirming: confirmation, sendLimit: sendLimit, confirmationLimit: confirmationLimit,
                mode: mode, in: requests)
        } catch {
            throw error.at(name: name)
        }
    }

    /// Sends a message that expects no reply, and suspends the task until it is queued, taken, or handled.
    ///
    /// - Parameters:
    ///   - message: the message. It stays the caller's.
    ///   - confirmation: how far the message has got when the call returns.
    ///   - sendLimit: how long to wait for room in the port's queue.
    ///   - confirmationLimit: how long to wait then, from the moment at which the message was sent.
    /// - Throws: ``/MessagePort/PortError/Code/invalidPort`` after ``invalidate()``,
    ///   ``/MessagePort/PortError/Code/peerDied`` when that is called during the wait; otherwise as
    ///   ``/MessagePort/SendRight/send(_:confirming:sendLimit:confirmationLimit:)``.
    nonisolated(nonsending) public func send(
        _ message: MachMessage, confirming confirmation: SendConfirmation, sendLimit: Duration = .seconds(10),
        confirmationLimit: Duration = .seconds(10)
    ) async throws(PortError) {
        do throws(PortError) {
            try checkValid()
            try await right.send(
                message, confirming: confirmation, sendLimit: sendLimit, confirmationLimit: confirmationLimit,
                in: requests)
        } catch {
            throw error.at(name: name)
        }
    }
}
