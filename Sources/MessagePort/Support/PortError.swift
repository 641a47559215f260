// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import PortSystem
package import RunLoopCore

/// Why a port operation failed.
///
/// Compare ``code``; print the error for a sentence that says what to do.
public struct PortError: Error, Hashable, Sendable {
    /// What went wrong, apart from its particulars.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The code's number, as it travels in a refusal packet (see `Docs/WireFormat.md`).
        package let rawValue: UInt8
        /// The code's name, as in the source.
        public let description: String

        fileprivate init(_ rawValue: UInt8, _ name: String) {
            self.rawValue = rawValue
            description = name
        }

        /// Codes are equal when their numbers are.
        public static func == (left: Code, right: Code) -> Bool { left.rawValue == right.rawValue }
        /// Hashes the number.
        public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }
    }

    /// What went wrong.
    public let code: Code
    /// The kernel's error number; nil when this library decided, not the kernel.
    public let systemError: SystemError?
    /// For ``Code/nameTaken``: the process that holds the name, when it is known.
    public let owner: Int32?
    /// What the error is about: a name, a path, a size and its limit.
    package let subject: Subject?
    /// Which port the error is about, when that is known: "port 3".
    package var subjectPort: String?
    /// What became of the message, when the code alone does not say.
    package var knownDelivery: Delivery?

    /// The particulars in an error's sentence.
    package enum Subject: Hashable, Sendable {
        case name(String)
        case path(String, StaticReason? = nil)
        case size(Int, limit: Int, of: Unit = .bytes)
        case reason(StaticReason)
        case worker(WorkerIdentity, WorkerExit? = nil)
        case text(String)
        case remote(code: Int32, text: String)
    }

    /// What there is too much of.
    package enum Unit: String, Hashable, Sendable {
        case bytes, components, rights, descriptors, levels
    }

    /// A fixed phrase: why a directory or a packet was not accepted.
    package struct StaticReason: Hashable, Sendable {
        let text: String
        package init(_ text: StaticString) { self.text = "\(text)" }
    }

    package init(
        _ code: Code, system systemError: SystemError? = nil, subject: Subject? = nil, owner: Int32? = nil,
        delivery: Delivery? = nil
    ) {
        self.code = code
        self.systemError = systemError
        self.subject = subject
        self.owner = owner
        knownDelivery = delivery
    }
}

extension PortError {
    /// Whether this process lacked descriptors or memory: then nothing is known of what it wanted to open or read, and
    /// the next attempt may succeed.
    package var isOwnShortage: Bool { code == .descriptorLimit || systemError?.isMemoryShortage == true }
}

extension PortError {
    /// The result of system calls, whose error becomes one of this library.
    @inline(__always)
    package static func converting<Success: ~Copyable>(
        _ calls: @autoclosure () throws(SystemError) -> Success, about subject: @autoclosure () -> Subject? = nil
    ) throws(PortError) -> Success {
        do throws(SystemError) {
            return try calls()
        } catch {
            throw PortError(error, subject: subject())
        }
    }
}

extension PortError.Code {
    /// The port, which belongs to this process, was invalidated. `kCFMessagePortIsInvalid`.
    public static let invalidPort = Self(1, "invalidPort")
    /// The port that the right names no longer exists; nothing was sent. `MACH_SEND_INVALID_DEST`.
    public static let deadName = Self(2, "deadName")
    /// The message was sent, but its receiver went away, or the requester's own remote port was invalidated, before the
    /// reply came. `kCFMessagePortBecameInvalidError`.
    public static let peerDied = Self(3, "peerDied")
    /// The queue was full until the send limit had passed; nothing was sent. `kCFMessagePortSendTimeout`.
    public static let sendTimedOut = Self(4, "sendTimedOut")
    /// The message was sent, but no reply came within the receive limit. `kCFMessagePortReceiveTimeout`.
    public static let replyTimedOut = Self(5, "replyTimedOut")
    /// The receiver dropped the send-once right unused: no reply will come. `MACH_NOTIFY_SEND_ONCE`.
    public static let replyDropped = Self(6, "replyDropped")
    /// The message's bytes exceed the limit; nothing was sent. `kCFMessagePortTransportError`.
    public static let messageTooLarge = Self(7, "messageTooLarge")
    /// The message has more descriptors than one message may carry; nothing was sent.
    public static let tooManyDescriptors = Self(8, "tooManyDescriptors")
    /// Descriptors of the message could not be received, because this process may open no more.
    public static let descriptorsLost = Self(9, "descriptorsLost")
    /// This process, or the system, has no file descriptor left (`EMFILE`, `ENFILE`).
    public static let descriptorLimit = Self(10, "descriptorLimit")
    /// Another port holds the name; ``PortError/owner`` is its process.
    public static let nameTaken = Self(11, "nameTaken")
    /// No live port has the name.
    public static let nameUnknown = Self(12, "nameUnknown")
    /// A name must have at least one byte.
    public static let nameEmpty = Self(13, "nameEmpty")
    /// A name has at most 128 bytes of UTF-8.
    public static let nameTooLong = Self(14, "nameTooLong")
    /// A name must not contain a NUL byte.
    public static let nameHasNUL = Self(15, "nameHasNUL")
    /// The directory of names or sockets is not this user's alone, or is no directory.
    public static let directoryUntrusted = Self(16, "directoryUntrusted")
    /// The other side does not talk to this process, or belongs to another user.
    public static let peerRefused = Self(17, "peerRefused")
    /// A packet on the socket is truncated, or not of this library's format.
    public static let malformedPacket = Self(18, "malformedPacket")
    /// The kernel refused; ``PortError/systemError`` says why.
    public static let systemCallFailed = Self(20, "systemCallFailed")
    /// The message expects no reply, or its reply right was taken before.
    public static let noReplyRight = Self(19, "noReplyRight")
    /// The port's queue has dropped the message for a newer one (``QueuePolicy``); it was not handled.
    public static let messageDropped = Self(21, "messageDropped")
    /// The port, or the connection to it, is the parent's: a forked child cannot use it.
    public static let forkedProcess = Self(22, "forkedProcess")
    /// The message holds a receive right of a port that cannot go to another process now; nothing was sent.
    public static let notTransferable = Self(23, "notTransferable")
    /// The task that waited was cancelled; the receiver of a request is notified.
    public static let cancelled = Self(25, "cancelled")
    /// The receiver answered with an error: ``PortError/remoteCode`` and ``PortError/remoteText`` are the receiver's
    /// own.
    public static let remoteError = Self(26, "remoteError")
    /// The request could never be answered: the threads would have to wait for each other. Within a process nothing was
    /// sent; in a circle through other processes the request was sent, and its receiver is notified that it is
    /// cancelled, unless it still waited for room (``PortError/delivery``).
    public static let wouldDeadlock = Self(27, "wouldDeadlock")
    /// The bytes of a message are not the value that was asked for.
    public static let malformedContent = Self(28, "malformedContent")
    /// Too much of what was sent to the other process is unread, so the connection to it was ended.
    public static let peerNotReading = Self(29, "peerNotReading")
    /// The worker, a thread or a process, could not be started; ``PortError/systemError`` says why.
    public static let workerNotStarted = Self(30, "workerNotStarted")
    /// The worker ended without checking in; ``PortError/workerExit`` says how.
    public static let workerExited = Self(31, "workerExited")
    /// The worker did not check in before the limit; it may still run.
    public static let checkInTimedOut = Self(32, "checkInTimedOut")
    /// The worker was asked to end, and did not before the limit.
    public static let workerStillRunning = Self(33, "workerStillRunning")
    /// The environment names a bootstrap port that cannot be: its variable is malformed, or the other end another
    /// user's.
    public static let bootstrapInvalid = Self(34, "bootstrapInvalid")
    /// This process has as many connections to the port as the port lets one process have (``PeerLimits/connections``).
    public static let tooManyConnections = Self(35, "tooManyConnections")
    /// The connection to the process has ended, so the kernel can no longer say which process it was.
    public static let connectionEnded = Self(36, "connectionEnded")
    /// Too many descriptors that this user has sent were not received yet (`ETOOMANYREFS`); nothing was sent.
    public static let descriptorsInFlight = Self(37, "descriptorsInFlight")

    /// The kernel gives this user no further watch of a directory (`fs.inotify.max_user_instances`,
    /// `fs.inotify.max_user_watches`).
    public static let watchLimit = Self(40, "watchLimit")
    /// The name did not appear before the limit.
    public static let nameWaitTimedOut = Self(41, "nameWaitTimedOut")
    /// What the supervisor handed to this process under the name is not a socket at which a port can listen, or the
    /// port cannot use it.
    public static let activationInvalid = Self(42, "activationInvalid")
    /// No supervisor handed a socket for the name to this process.
    public static let nameNotDeclared = Self(43, "nameNotDeclared")
    /// The socket for the name was taken before: a port checks in once.
    public static let alreadyCheckedIn = Self(44, "alreadyCheckedIn")
    /// The port is served by a run loop, or by a dispatcher, and the other was asked for.
    public static let servedElsewhere = Self(45, "servedElsewhere")
    /// The port's owner does not let its messages be watched (``MachPort/setAllowsWatching(_:)``).
    public static let notWatchable = Self(46, "notWatchable")
    /// The shared directory does not let this user register the name.
    public static let nameNotAllowed = Self(50, "nameNotAllowed")

    /// A pool had no room for a loan until the limit (``MemoryPool``).
    public static let poolFull = Self(51, "poolFull")

    package static let all: [Self] = [
        .invalidPort, .deadName, .peerDied, .sendTimedOut, .replyTimedOut, .replyDropped, .messageTooLarge,
        .tooManyDescriptors, .descriptorsLost, .descriptorLimit, .nameTaken, .nameUnknown, .nameEmpty, .nameTooLong,
        .nameHasNUL, .directoryUntrusted, .peerRefused, .malformedPacket, .noReplyRight,
        .systemCallFailed, .messageDropped, .forkedProcess, .notTransferable, .cancelled, .remoteError, .wouldDeadlock,
        .malformedContent, .peerNotReading, .workerNotStarted, .workerExited, .checkInTimedOut, .workerStillRunning,
        .bootstrapInvalid, .tooManyConnections, .connectionEnded, .descriptorsInFlight, .watchLimit, .nameWaitTimedOut,
        .activationInvalid,
        .nameNotDeclared, .alreadyCheckedIn, .servedElsewhere, .notWatchable, .nameNotAllowed, .poolFull,
    ]
}

extension PortError {
    /// What a failed system call means.
    package init(_ error: SystemError, subject: Subject? = nil) {
        let code: Code =
            error.isDescriptorLimit
            ? .descriptorLimit : error.isInFlightLimit ? .descriptorsInFlight : .systemCallFailed
        self.init(code, system: error, subject: subject)
    }
}

// MARK: - Delivery

extension PortError {
    /// What became of the message whose sending, or whose reply, failed.
    public enum Delivery: UInt8, Hashable, Sendable {
        /// It is not known: the receiver was killed, or did not answer in time.
        case unknown = 0
        /// It reached the port's queue and was dropped there: it was not read and never will be.
        case unread = 1
        /// The receiver dequeued it.
        case read = 2
        /// It did not leave the sender, which may send it again.
        case notSent = 3
    }

    /// What became of the message: which leg of a request failed.
    ///
    /// Asking again does no harm after ``Delivery/notSent`` and ``Delivery/unread``. A receiver that is killed reports
    /// nothing: ``Delivery/unknown``.
    public var delivery: Delivery {
        if let knownDelivery { return knownDelivery }
        return switch code {
        case .peerDied, .replyTimedOut, .replyDropped, .descriptorsLost, .malformedPacket, .cancelled, .peerNotReading:
            .unknown
        case .remoteError, .malformedContent: .read
        case .messageDropped: .unread
        default: .notSent
        }
    }

    /// For ``Code/remoteError``: the receiver's own number.
    public var remoteCode: Int32? {
        if case .remote(let code, _) = subject { code } else { nil }
    }

    /// For ``Code/remoteError``: what the receiver says, at most ``remoteTextLimit`` bytes of UTF-8.
    public var remoteText: String? {
        if case .remote(_, let text) = subject { text } else { nil }
    }

    /// The most bytes of UTF-8 that the text of an error reply has; a longer one is cut between characters.
    public static let remoteTextLimit = 4_096

    /// An error of the receiver's own, as its requester gets it.
    package static func remote(code: Int32, text: String) -> PortError {
        var (shown, size) = ("", 0)
        if text.utf8.count <= remoteTextLimit {
            shown = text
        } else {
            for character in text {
                size += character.utf8.count
                if size > remoteTextLimit { break }
                shown.append(character)
            }
        }
        return PortError(.remoteError, subject: .remote(code: code, text: shown), delivery: .read)
    }

    /// The same error with the port that it is about, unless the port is already set.
    package func at(_ subjectPort: @autoclosure () -> String) -> PortError {
        if self.subjectPort != nil { return self }
        var error = self
        error.subjectPort = subjectPort()
        return error
    }

    /// The same error with the name of the port that it is about, unless the error already contains the name.
    package func at(name: String) -> PortError {
        switch subject {
        case .name?: return self
        case .size? where code == .nameTooLong: return self
        default: break
        }
        if code == .nameEmpty { return self }
        var error = self
        error.subjectPort = "the port \(name.debugDescription)"
        return error
    }

    /// The same error with what became of the message, unless that was known.
    package func delivered(_ delivery: Delivery) -> PortError {
        var error = self
        if error.knownDelivery == nil { error.knownDelivery = delivery }
        return error
    }
}

// MARK: - CFStatus

extension PortError {
    /// The status that `CFMessagePortSendRequest` would have returned, for code that is ported from there; success is
    /// 0.
    ///
    /// - `kCFMessagePortSendTimeout` (-1): ``Code/sendTimedOut``.
    /// - `kCFMessagePortReceiveTimeout` (-2): ``Code/replyTimedOut``.
    /// - `kCFMessagePortIsInvalid` (-3): ``Code/invalidPort`` and ``Code/deadName``: nothing was sent, the port is
    ///   gone.
    /// - `kCFMessagePortTransportError` (-4): every error for which CFMessagePort has no number.
    /// - `kCFMessagePortBecameInvalidError` (-5): ``Code/peerDied``: the port went away before it replied.
    public var cfStatus: Int32 {
        switch code {
        case .sendTimedOut: -1
        case .replyTimedOut: -2
        case .invalidPort, .deadName: -3
        case .peerDied: -5
        default: -4
        }
    }
}

extension PortError {
    /// The error here for a peer's refusal.
    init(refusal: Int32) {
        let known: [PortError.Code] = [.descriptorsLost, .malformedPacket, .descriptorLimit, .tooManyConnections]
        switch known.first(where: { Int32($0.rawValue) == refusal }) {
        case PortError.Code.descriptorLimit?:
            // It was accepted only to be refused: what was sent is unread.
            self.init(
                .descriptorLimit, subject: .reason(.init("it is the other process that has none")), delivery: .unread)
        case PortError.Code.tooManyConnections?: self.init(.tooManyConnections, delivery: .unread)
        case let code?: self.init(code)
        case nil: self.init(.peerRefused)
        }
    }
}

extension ForkGuard {
    /// - Throws: `forkedProcess` in a forked child.
    package func check() throws(PortError) {
        if isInherited { throw PortError(.forkedProcess) }
    }
}

extension ThreadRunLoop {
    /// Adds a source whose descriptor the kernel may refuse to watch.
    package func addOrThrow(_ source: RunLoopSource, to mode: RunLoopMode) throws(PortError) {
        try PortError.converting(tryAdd(source, to: mode))
    }
}
