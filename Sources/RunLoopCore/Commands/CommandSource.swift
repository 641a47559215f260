// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A custom input source with a buffer of commands, and clients that are told where they may send them.
///
/// It is the design of listings 3-3 to 3-9 of Apple's Run Loops chapter. A worker makes the source, says who its
/// clients are, and adds it to its loop. Each client is told of it on its own loop, and keeps the context that it is
/// given. Then it sends commands, from any thread; the handler gets them on the worker's thread. When the source leaves
/// the loop, because it was removed or invalidated or because the worker's thread ends, each client is told to let it
/// go.
///
/// ```swift
/// let source = CommandSource<String> { source, commands in
///     for command in commands { print(command) }
/// }
/// source.addClient(on: .main, registered: { known.insert($0) }, removed: { known.remove($0) })
/// source.add(to: .current)
/// ```
///
/// The loop keeps the source while the source is in it. Nothing else keeps it but its clients' contexts, those included
/// that a client is still to be told: a client whose loop does not run again, and whose thread does not end, keeps the
/// source until it leaves or the source is invalidated. A source that is in no loop, and that nobody holds, goes away.
/// Invalidation lets the clients go, and the commands that wait.
///
/// - Important: Thread safety: any thread. The handler is called on the thread of a loop that the source is in, what a
///   client is told on the client's. No lock is held during a call.
public final class CommandSource<Command: Sendable>: Sendable {
    /// Handles commands, on the thread of the loop that the source is in: all that wait, oldest first.
    public typealias Handler = @Sendable (_ source: CommandSource<Command>, _ commands: [Command]) -> Void

    let buffer: CommandBuffer<Command>
    let source: RunLoopSource

    /// The most commands that may wait, unless said otherwise: 1,024.
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

    /// Adds the source to a mode of a loop. When it is the first mode of that loop, its clients are told: a call of
    /// their `registered` is posted to their loops, and not waited for. An invalid source, and a loop that has ended,
    /// are ignored.
    ///
    /// - Parameters:
    ///   - loop: the worker's loop.
    ///   - mode: the mode, or ``RunLoopMode/common`` for all common modes.
    public func add(to loop: ThreadRunLoop, mode: RunLoopMode = .default) {
        loop.add(source, to: mode)
    }

    /// Takes the source out of a mode of a loop. When it was the last mode of that loop, its clients are told, as
    /// ``addClient(on:in:removalLimit:registered:removed:)`` says. Commands that wait stay for the next loop.
    ///
    /// - Parameters:
    ///   - loop: the worker's loop.
    ///   - mode: the mode, or ``RunLoopMode/common``.
    public func remove(from loop: ThreadRunLoop, mode: RunLoopMode = .default) {
        loop.remove(source, from: mode)
    }

    /// Takes the source out of everything, for ever.
    ///
    /// Commands that wait are released unhandled, and no more are accepted. The handler, when it is under way, goes on.
    /// Clients are told, as ``addClient(on:in:removalLimit:registered:removed:)`` says, and let go.
    public func invalidate() {
        buffer.invalidate { source.invalidate() }
    }

    /// Whether it still takes commands.
    public var isValid: Bool { buffer.isValid }

    /// How many commands wait for the handler.
    public var count: Int { buffer.count }

    /// Puts a command into the buffer, behind all others, and leaves the worker alone: it handles the command when the
    /// source is fired next.
    ///
    /// - Parameter command: the command.
    /// - Returns: whether it was taken.
    public func add(_ command: Command) -> CommandAcceptance {
        buffer.add(command)
    }

    /// Signals the source and wakes its loop: the handler gets all commands that wait then, in one call. With an empty
    /// buffer it is not called. Commands that come while it is called wait for the next firing.
    public func fire() {
        source.signal()
    }

    /// Puts a command into the buffer, behind all others, and fires the source.
    ///
    /// - Parameter command: the command.
    /// - Returns: whether it was taken; when not, nothing is fired.
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
