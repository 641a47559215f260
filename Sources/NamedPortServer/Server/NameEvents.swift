// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort
import PortSystem

extension PortNameServer {
    /// The names that are held now and those that come and go from then on, as an asynchronous sequence.
    ///
    /// ```swift
    /// for try await event in PortNameServer.shared.events { print(event) }
    /// ```
    ///
    /// Order and completeness are those of ``watch(on:in:_:)``. Each iteration has a watch of its own, from its first
    /// element to its end. It has no buffer: what happens while no task asks waits in the kernel. A waiting task blocks
    /// no thread: one thread, shared by all asynchronous calls of the process, watches.
    public var events: NameEvents { NameEvents(server: self) }
}

/// Names that come and go: ``PortNameServer/events``.
public struct NameEvents: AsyncSequence, Sendable {
    /// What the sequence gives.
    public typealias Element = NameEvent
    /// Why an iteration fails, as ``PortNameServer/watch(on:in:_:)`` does. The next call tries again, and nothing is
    /// lost.
    public typealias Failure = PortError

    let server: PortNameServer

    /// Starts to iterate: nothing happens before the first element is asked for.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(server: server) }

    /// Gives one event after the other.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let server: PortNameServer
        private var follower: NameMonitor?

        init(server: PortNameServer) {
            self.server = server
        }

        /// The next event, suspending the task until there is one.
        ///
        /// - Returns: the event; nil when the task was cancelled.
        public mutating func next() async throws(PortError) -> NameEvent? {
            try await nextEvent()
        }

        /// As above, in the caller's isolation.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(PortError) -> NameEvent? {
            try await nextEvent()
        }

        nonisolated(nonsending) private mutating func nextEvent() async throws(PortError) -> NameEvent? {
            let follower = try begun()
            while !Task.isCancelled {
                if let event = try follower.next() { return event }
                try await DescriptorWait.wait(for: follower.raw, until: follower.nextLook)
            }
            return nil
        }

        private mutating func begun() throws(PortError) -> NameMonitor {
            if let follower { return follower }
            let made = try server.follower()
            follower = made
            return made
        }
    }
}
