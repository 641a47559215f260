// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import PortSystem
import Synchronization

/// A custom input source with a buffer of commands, and clients that are notified where they may send them.
///
/// It is the design of listings 3-3 to 3-9 of Apple's Run Loops chapter. A worker makes the source, adds its clients,
/// and adds it to its loop. Each client is notified on its own loop, and retains the context that it receives. Then it
/// sends commands, from any thread; the handler receives them on the worker's thread. When the source leaves the loop,
/// because it was removed or invalidated or because the worker's thread ends, each client is notified to drop the
/// context.
///
/// ```swift
/// let source = CommandSource<String> { source, commands in
///     for command in commands { print(command) }
/// }
/// source.addClient(on: .main, registered: { known.insert($0) }, removed: { known.remove($0) })
/// source.add(to: .current)
/// ```
///
/// The loop retains the source while the source is in it. Otherwise only its clients' contexts do, including those in
/// pending notices: a client whose loop does not run again, and whose thread does not end, retains the source until the
/// client leaves or the source is invalidated. A source that is in no loop, and to which there is no other reference,
/// is released. Invalidation releases the clients and the waiting commands.
///
/// - Important: Thread safety: any thread. The handler is called on the thread of a loop that the source is in, a
///   client's callbacks on the client's. No lock is held during a call.
public final class CommandSource<Command: Sendable>: Sendable {
    /// Handles commands, on the thread of the loop that the source is in: all waiting commands, oldest first.
    public typealias Handler = @Sendable (_ source: CommandSource<Command>, _ commands: [Command]) -> Void

    let buffer: CommandBuffer<Command>
    let source: RunLoopSource

    /// The most commands that may wait, unless another limit is given: 1,024.
    public static var defaultBufferLimit: Int { 1024 }

    /// Makes a source with an empty buffer, to be added to a loop.
    ///
    /// - Parameters:
    ///   - name: what it is called in traces, reports and descriptions.
    ///   - bufferLimit: the most commands that may wait, at least 1 or the call traps.
    ///   - order: of the custom sources of a loop that have work at the same time, lower ones are performed first.
    ///   - handler: what to call with the commands.
    public init(
        name: String? = nil, bufferLimit: Int = CommandSource.defaultBufferLimit, order: Int = 0,
        handler: @escaping Handler
    ) {
        if bufferLimit < 1 {
            fatalError("A command source needs a buffer for at least one command, not \(bufferLimit). Choose more.")
        }
        let buffer = CommandBuffer<Command>(limit: bufferLimit, handler: handler)
        self.buffer = buffer
        source = RunLoopSource(
            name: name ?? "commands", order: order,
            schedule: { loop, _ in buffer.didEnter(loop) },
            cancel: { loop, _ in buffer.didLeave(loop) },
            perform: { buffer.drain() })
        buffer.state.withLock { $0.source = self }
    }

    /// Adds the source to a mode of a loop. When it is the first mode of that loop, its clients are notified: a call of
    /// their `registered` is posted to their loops, without waiting for it. Does nothing for an invalid source or a
    /// loop that has ended.
    ///
    /// - Parameters:
    ///   - loop: the worker's loop.
    ///   - mode: the mode, or ``RunLoopMode/common`` for all common modes.
    public func add(to loop: ThreadRunLoop, mode: RunLoopMode = .default) {
        loop.add(source, to: mode)
    }

    /// Removes the source from a mode of a loop. When it was the last mode of that loop, its clients are notified, as
    /// ``addClient(on:in:removalLimit:registered:removed:)`` describes. Waiting commands remain for the next loop.
    ///
    /// - Parameters:
    ///   - loop: the worker's loop.
    ///   - mode: the mode, or ``RunLoopMode/common``.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    public func remove(from loop: ThreadRunLoop, mode: RunLoopMode = .default) {
        loop.remove(source, from: mode)
    }

    /// Removes the source from a mode of a loop, as the blocking form does, and suspends the task until the clients were
    /// notified.
    ///
    /// It starts a thread that waits for them meanwhile. Cancelling the task changes nothing: the call waits for a
    /// removal that has begun.
    ///
    /// - Parameters:
    ///   - loop: the worker's loop.
    ///   - mode: the mode, or ``RunLoopMode/common``.
    /// - Throws: `EAGAIN` when the system gives no thread: nothing was done then.
    nonisolated(nonsending) public func remove(
        from loop: ThreadRunLoop, mode: RunLoopMode = .default
    ) async throws(SystemError) {
        try await offThePool { self.remove(from: loop, mode: mode) }
    }

    /// Removes the source from everything, permanently.
    ///
    /// Waiting commands are released unhandled, and no more are accepted. A call of the handler that is in progress
    /// continues. Clients are notified, as ``addClient(on:in:removalLimit:registered:removed:)`` describes, and
    /// released.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    public func invalidate() {
        buffer.invalidate { source.invalidate() }
    }

    /// Removes the source from everything, permanently, as the blocking form does, and suspends the task until the
    /// clients were notified.
    ///
    /// It starts a thread that waits for them meanwhile. Cancelling the task changes nothing: the call waits for an end
    /// that has begun.
    ///
    /// - Throws: `EAGAIN` when the system gives no thread: nothing was done then.
    nonisolated(nonsending) public func invalidate() async throws(SystemError) {
        try await offThePool { self.invalidate() }
    }

    /// Whether it still accepts commands.
    public var isValid: Bool { buffer.state.withLock { $0.isValid } }

    /// How many commands wait for the handler.
    public var count: Int { buffer.state.withLock { $0.commands.count } }

    /// Appends a command to the buffer without waking the worker: the worker handles the command when the source is
    /// next fired.
    ///
    /// - Parameter command: the command.
    /// - Returns: whether it was accepted.
    public func add(_ command: Command) -> CommandAcceptance {
        buffer.add(command)
    }

    /// Signals the source and wakes its loop: the handler receives all commands that are waiting then, in one call.
    /// With an empty buffer it is not called. Commands that are added during the call wait for the next firing.
    public func fire() {
        source.signal()
    }

    /// Appends a command to the buffer, and fires the source.
    ///
    /// - Parameter command: the command.
    /// - Returns: whether it was accepted; if not, nothing is fired.
    public func send(_ command: Command) -> CommandAcceptance {
        let acceptance = buffer.add(command)
        if acceptance == .accepted { fire() }
        return acceptance
    }
}

extension CommandSource: Hashable {
    /// Whether both are the same source.
    public static func == (left: CommandSource, right: CommandSource) -> Bool { left === right }

    /// Hashes the source's identity.
    ///
    /// - Parameter hasher: takes the identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

// MARK: - Client

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
        private let notificationTarget = Shared(())
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
            loop.cancelPerformRequests(for: notificationTarget)
        }

        /// Makes the client's thread read its notices.
        func post() {
            let request = PerformRequest(
                on: loop, for: notificationTarget, whenOver: { wasCalled in if !wasCalled { self.leave() } }
            ) {
                self.buffer?.state.withLock { $0.endPost(to: self.id) }
                self.deliver()
            }
            loop.post(request, in: modes)
        }

        /// Delivers the pending notices to the client, in order, on its own thread.
        func deliver() {
            while let notice = buffer?.dequeueNotice(for: id) {
                switch notice {
                case .registered(let context): registered(context)
                case .removed(let context, let isDone):
                    removed(context)
                    isDone.set()
                }
            }
        }
    }

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

/// What became of a command that was passed to a ``CommandSource``.
public enum CommandAcceptance: Sendable, Hashable {
    /// It is in the buffer, and reaches the handler once the source is fired, unless the source is invalidated before.
    case accepted
    /// The buffer is full; the command was not accepted. Fire the source, or try again later.
    case bufferFull
    /// The source is invalid; the command was not accepted.
    case sourceInvalid
}

/// Calls a function that blocks on a thread of its own, and suspends the task until it has returned.
private nonisolated(nonsending) func offThePool(_ body: @escaping @Sendable () -> Void) async throws(SystemError) {
    let failure = await withCheckedContinuation { (continuation: CheckedContinuation<SystemError?, Never>) in
        do throws(SystemError) {
            // The thread ends with the call; it is not joined.
            _ = try sysStartThread(blocksSignals: true) {
                sysNameThread("command-source")
                body()
                continuation.resume(returning: nil)
            }
        } catch {
            continuation.resume(returning: error)
        }
    }
    if let failure { throw failure }
}
