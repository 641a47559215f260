// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

extension CommandSource {
    /// What a client receives: which source can be reached, and in which loop it is.
    public struct Context: Sendable, Hashable {
        /// Where to send commands.
        public let source: CommandSource<Command>
        /// The worker's loop.
        public let loop: ThreadRunLoop
    }

    /// Is notified of a source, on a loop of its own.
    ///
    /// The source retains it until it leaves, or the source is invalid, or the client's thread has ended.
    ///
    /// - Important: Thread safety: any thread.
    public final class Client: Sendable {
        /// A client's callback, which is called on the client's thread.
        public typealias Callback = @Sendable (Context) -> Void

        let id = ItemID()
        let modes: [RunLoopMode]
        let removalLimit: Duration
        let registered: Callback
        let removed: Callback
        /// The target of the requests that are posted to the client's loop.
        private let posts = Posts()
        /// Lives while there is a pending notice, which holds the source.
        private weak let buffer: CommandBuffer<Command>?

        /// The client's loop.
        public let loop: ThreadRunLoop

        init(
            _ buffer: CommandBuffer<Command>, on loop: ThreadRunLoop, in modes: [RunLoopMode], removalLimit: Duration,
            registered: @escaping Callback, removed: @escaping Callback
        ) {
            self.buffer = buffer
            self.loop = loop
            self.modes = modes
            self.removalLimit = removalLimit
            self.registered = registered
            self.removed = removed
        }

        /// Ends the client: it receives nothing more, not even notices that are already under way, and no call waits
        /// for it any longer. A callback that has begun continues.
        public func leave() {
            buffer?.remove(id)
            loop.cancelPerformRequests(for: posts)
        }

        /// Makes the client's thread read its notices.
        func post() {
            let request = PerformRequest(
                on: loop, for: posts, whenOver: { wasCalled in if !wasCalled { self.leave() } }
            ) {
                self.buffer?.endPost(to: self.id)
                self.deliver()
            }
            loop.post(request, in: modes)
        }

        /// Delivers the pending notices to the client, in order, on its own thread.
        func deliver() {
            while let notice = buffer?.takeNotice(for: id) {
                switch notice.event {
                case .registered: registered(notice.context)
                case .removed: removed(notice.context)
                }
                notice.isDone?.set()
            }
        }
    }

    /// The target of the requests that notify a client.
    private final class Posts: Sendable {}

    /// Notifies a client, on its loop, when the source can be reached and when it no longer can.
    ///
    /// `registered` is called once for each loop that the source is in or enters, `removed` once for each that it
    /// leaves after that, in the order of events. They are posted to the client's loop and called when it runs in one
    /// of the modes. When the source has left again before the client was notified that it came, the client is notified
    /// of neither. A client of an invalid source receives nothing.
    ///
    /// No call waits for `registered`. The thread that makes the source leave waits until `removed` has returned, so
    /// that the client has dropped the context by then: the thread that removes or invalidates the source, or the
    /// worker's thread when it ends. It waits at most for the client's limit. A client whose loop does not get to it
    /// within the limit is notified later, when its loop runs; one whose thread ends is no longer a client. When the
    /// source leaves on the client's own thread, also because client and worker are one thread, the client is notified
    /// at once, after its pending notices, and nothing waits.
    ///
    /// - Parameters:
    ///   - loop: the client's loop.
    ///   - modes: in which modes of it the client is notified, at least one or the call traps.
    ///   - removalLimit: the longest time to wait for `removed`; zero or less does not wait.
    ///   - registered: receives the context, for sending commands.
    ///   - removed: receives the context, for dropping it.
    /// - Returns: the client; it need not be retained.
    @discardableResult
    public func addClient(
        on loop: ThreadRunLoop, in modes: [RunLoopMode] = [.common], removalLimit: Duration = .seconds(1),
        registered: @escaping Client.Callback, removed: @escaping Client.Callback
    ) -> Client {
        ThreadRunLoop.checkRequestModes(modes)
        let client = Client(
            buffer, on: loop, in: modes, removalLimit: removalLimit, registered: registered, removed: removed)
        buffer.add(client)
        return client
    }
}
