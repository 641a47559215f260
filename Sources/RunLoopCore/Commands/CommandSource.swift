// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

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
        buffer.setSource(self)
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
    public func remove(from loop: ThreadRunLoop, mode: RunLoopMode = .default) {
        loop.remove(source, from: mode)
    }

    /// Removes the source from everything, permanently.
    ///
    /// Waiting commands are released unhandled, and no more are accepted. A call of the handler that is in progress
    /// continues. Clients are notified, as ``addClient(on:in:removalLimit:registered:removed:)`` describes, and
    /// released.
    public func invalidate() {
        buffer.invalidate { source.invalidate() }
    }

    /// Whether it still accepts commands.
    public var isValid: Bool { buffer.isValid }

    /// How many commands wait for the handler.
    public var count: Int { buffer.count }

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
    public static func == (left: CommandSource, right: CommandSource) -> Bool {
        left === right
    }

    /// Hashes the source's identity.
    ///
    /// - Parameter hasher: takes the identity.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}
