// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort
import PortSystem

extension PortNameServer {
    /// Waits until a live port has a name, and gives the right to it. Blocks the thread in the kernel, without a run
    /// loop and without polling.
    ///
    /// The directory of names may be removed and come back meanwhile. A name that is there already is found without a
    /// wait; a limit of zero or less only looks the name up. A socket that a supervisor declares for the name is found
    /// too, also when it comes during the wait.
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - limit: how long to wait.
    /// - Returns: the right, as ``lookUp(_:)`` gives it.
    /// - Throws: ``/MessagePort/PortError/Code/nameWaitTimedOut``; ``/MessagePort/PortError/Code/watchLimit`` when the
    ///   kernel gives no watch; and as ``lookUp(_:)``, but never ``/MessagePort/PortError/Code/nameUnknown``.
    public func waitFor(_ name: String, within limit: Duration) throws(PortError) -> SendRight {
        let (portName, deadline) = (try PortName(name), MonotonicInstant.after(limit))
        if let right = try find(portName) { return right }
        if limit > .zero {
            let wait = try NameWait(for: portName, in: self)
            repeat {
                if let right = try wait.look() { return right }
                do throws(SystemError) {
                    _ = try sysPoll(wait.raw, .readable, until: min(deadline, wait.nextLook))
                } catch {
                    throw PortError(error)
                }
            } while .now < deadline
            if let right = try wait.look(isLast: true) { return right }
        }
        throw PortError(.nameWaitTimedOut, subject: .name(name))
    }

    /// Waits until a live port has a name, and gives the right to it. Suspends the task, and blocks no thread: one
    /// thread, shared by all asynchronous calls of the process, watches.
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - limit: how long to wait.
    /// - Returns: the right, as ``lookUp(_:)`` gives it.
    /// - Throws: as the call that blocks; ``/MessagePort/PortError/Code/cancelled`` when the task is cancelled.
    nonisolated(nonsending) public func waitFor(_ name: String, within limit: Duration) async throws(PortError)
        -> SendRight
    {
        let (portName, deadline) = (try PortName(name), MonotonicInstant.after(limit))
        if Task.isCancelled { throw PortError(.cancelled, subject: .name(name), delivery: .notSent) }
        if let right = try find(portName) { return right }
        if limit > .zero {
            let wait = try NameWait(for: portName, in: self)
            defer { withExtendedLifetime(wait) {} }
            repeat {
                if let right = try wait.look() { return right }
                try await DescriptorWait.wait(for: wait.raw, until: min(deadline, wait.nextLook))
                if Task.isCancelled { throw PortError(.cancelled, subject: .name(name), delivery: .notSent) }
            } while .now < deadline
            if let right = try wait.look(isLast: true) { return right }
        }
        throw PortError(.nameWaitTimedOut, subject: .name(name))
    }
}
