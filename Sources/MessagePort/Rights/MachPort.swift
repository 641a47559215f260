// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore
import Synchronization

/// The receive right of a port: a bounded queue of messages, and a handler that runs on a run loop. `NSMachPort`,
/// `MACH_PORT_RIGHT_RECEIVE`.
///
/// Make a port, give it a handler, schedule it on a run loop, and pass ``makeSendRight()`` to the code that should talk
/// to it. A run loop retains a scheduled port; otherwise the port ends when the last reference to this object goes. In
/// an optimized build that may be right after the last use of a variable, not where its scope ends: a port of which
/// only the rights are still used needs a property, `withExtendedLifetime`, or a loop that retains it.
///
/// - Important: Thread safety: any thread. The handler runs on the thread of the run loop.
public final class MachPort: Sendable {
    /// What a port calls for each message: with the port itself, so that the closure need not capture it.
    ///
    /// It cannot throw: reply with an error instead (``MachMessage/replyError(_:_:)``).
    public typealias Handler = @Sendable (MachPort, MachMessage) -> Void

    /// How many messages a port's queue holds unless said otherwise.
    public static let defaultQueueLimit = 64

    /// The largest queue limit: `MACH_PORT_QLIMIT_KERNEL`.
    public static let maximumQueueLimit = 65_534

    struct State {
        /// What gets the messages; nil drops them.
        var receiver: Receiver?
        var rarities: Rarities?
        /// The port's source while it is in a loop, or other code may have it too.
        var service = HandlerBinding.nobody
        var source: RunLoopSource? { service.source }
        /// The generation in `HandlerOwnership` of this source, or of the next.
        var turn: UInt64 = 0
    }

    package let core: LocalPort  // immutable
    let state: Mutex<State>  // locked before the source's lock

    /// Makes a port that is reachable within this process; it uses no file descriptor.
    ///
    /// - Parameters:
    ///   - queueLimit: how many messages may wait in the queue, from 1 to ``maximumQueueLimit``; others trap.
    ///   - queuePolicy: what happens to a message for which the queue has no room.
    ///   - handler: called for each message on the loop that the port is scheduled on. Without one, a scheduled port
    ///     drops its messages, as `NSPort` does without a delegate.
    public convenience init(
        queueLimit: Int = MachPort.defaultQueueLimit, queuePolicy: QueuePolicy = .refuse, handler: Handler? = nil
    ) {
        self.init(queueLimit: queueLimit, queuePolicy: queuePolicy, handler: handler, intercept: nil)
    }

    /// The same, for a port that intercepts some of its messages before they are queued.
    init(queueLimit: Int, queuePolicy: QueuePolicy = .refuse, handler: Handler?, intercept: LocalPort.Interceptor?) {
        Self.checkQueueLimit(queueLimit)
        core = LocalPort(queueLimit: queueLimit, policy: queuePolicy, intercept: intercept)
        state = Mutex(State(receiver: Receiver(handler)))
    }

    deinit {
        invalidate()
        // A forked child has a copy: if the copy ended, it would remove its parent's sockets.
        if core.isInherited { core.outliveProcess() }
    }

    /// A right to send to this port; all of them are equal. `MACH_MSG_TYPE_MAKE_SEND`.
    ///
    /// - Returns: the right.
    public func makeSendRight() -> SendRight {
        SendRight(core)
    }

    /// A right to send one message to this port, whatever its queue holds. `MACH_MSG_TYPE_MAKE_SEND_ONCE`.
    ///
    /// When the right is dropped unused, the port gets a message with the id ``MachMessage/sendOnceNotification``.
    ///
    /// - Returns: the right.
    public func makeSendOnceRight() -> SendOnceRight {
        let target = ReplyTarget(PortReplyReceiver(core))
        _ = target.take()
        return SendOnceRight(taken: target)
    }

    /// Whether the port can receive.
    public var isValid: Bool { !core.isDead }

    /// Ends the port: it receives nothing more, leaves every run loop, and is a dead name for all send rights.
    ///
    /// Messages in its queue bounce: a requester that waits for a reply to one gets ``PortError/Code/peerDied``, and
    /// their descriptors close. Idempotent; may be called in the port's own handler.
    ///
    /// The first call does all that before it returns. Any other returns at once: the port is invalid then, but the
    /// bouncing, and the invalidation handler, may still be under way on the thread of the first. It does not wait for
    /// that, because the invalidation handler may itself wait for the other thread.
    public func invalidate() {
        guard core.die() else { return }
        let old = state.withLock { state in
            defer { state.service = .nobody }
            return (state.replaceReceiver(by: nil, of: nil), state.source)
        }
        core.receiverChanges.add(1, ordering: .releasing)
        old.1?.invalidate()
        tellInvalidation()
        withExtendedLifetime(old) {}  // what the handler holds is released after the invalidation handler was called
    }
}

extension MachPort: Hashable {
    /// Ports are equal when they are the same object.
    public static func == (left: MachPort, right: MachPort) -> Bool { left === right }

    /// Hashes the object's identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
