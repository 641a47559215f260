// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

extension MachPort {
    /// The port's messages as an asynchronous sequence.
    ///
    /// ```swift
    /// for try await message in port.messages {
    ///     try message.reply(content: answer(message))
    /// }
    /// ```
    ///
    /// There is no buffer but the port's queue: a message is dequeued when a task asks for the next one, so senders
    /// wait for room as always. The sequence ends when the port is invalidated, at once: messages in the queue bounce
    /// then. It ends for a task that is cancelled, which dequeues nothing: no message is lost. Several tasks may
    /// iterate: each message goes to one of them. The sequence keeps the port alive.
    ///
    /// A task that waits holds no thread. What comes from other processes is received by one thread, which all waiting
    /// tasks of the process share; it starts when it is first needed.
    public var messages: Messages { Messages(port: self) }

    /// The messages of a port: ``MachPort/messages``.
    public struct Messages: AsyncSequence, Sendable {
        /// The type of its elements.
        public typealias Element = MachMessage
        /// Why it fails: ``PortError/Code/descriptorLimit`` and ``PortError/Code/systemCallFailed`` when the port's
        /// sockets cannot be watched, and the next call tries again; ``PortError/Code/forkedProcess``.
        public typealias Failure = PortError

        let port: MachPort

        /// Starts to iterate: nothing happens before the first call of `next()`.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(port: port) }

        /// Dequeues one message after the other.
        public struct AsyncIterator: AsyncIteratorProtocol {
            let port: MachPort

            /// Dequeues the oldest message, suspending the task until there is one.
            ///
            /// - Returns: the message; nil when the port is invalid, or the task was cancelled.
            public mutating func next() async throws(PortError) -> MachMessage? {
                try await port.core.takeForTask()
            }

            /// The same, in the caller's isolation.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(PortError) -> MachMessage? {
                try await port.core.takeForTask()
            }
        }
    }
}
