// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

extension PortError: CustomStringConvertible {
    /// One sentence: what happened, in parentheses which port, name, path or worker it is about and what else is known,
    /// and what to do. What a peer chose, such as a name or the text of its error, is printed without what a terminal
    /// obeys.
    public var description: String {
        let sentence = Self.sentences[code] ?? "The port operation failed (\(code)); look the code up."
        guard !facts.isEmpty, let end = sentence.firstRange(of: "; ")?.lowerBound else { return sentence }
        return "\(sentence[..<end]) (\(harmlessText(facts.joined(separator: ", "))))\(sentence[end...])"
    }

    /// What else is known, in the order in which it is printed.
    private var facts: [String] {
        var facts: [String] = []
        switch subject {
        case .name(let name): facts.append(name.debugDescription)
        case .path(let path, let reason): facts += [reason?.text, path].compactMap { $0 }
        case .size(let size, let limit, let unit): facts.append("\(size) of at most \(limit) \(unit)")
        case .reason(let reason): facts.append(reason.text)
        case .worker(let worker, let exit): facts += ["worker \(worker)", exit.map { "\($0)" }].compactMap { $0 }
        case .text(let more): facts.append(more)
        case .remote(let code, let more):
            facts.append("its code \(code)")
            if !more.isEmpty { facts.append("it says \(more.debugDescription)") }
        case nil: break
        }
        if let subjectPort { facts.append(subjectPort) }
        switch knownDelivery {
        case .unread?: facts.append("nobody had read the message")
        case .read?: facts.append("the message had been read")
        case .notSent?, .unknown?, nil: break
        }
        if let owner { facts.append("owner: process \(owner)") }
        if let systemError { facts.append("the kernel says: \(systemError)") }
        return facts
    }

    private static let sentences: [Code: String] = [
        .invalidPort: "The port was invalidated; make a new one.",
        .deadName: "The port at the other end is gone; look it up again.",
        .peerDied: "The receiver went away before it replied; look it up and ask again if asking twice does no harm.",
        .sendTimedOut:
            "The receiver's queue stayed full until the send limit, and nothing was sent; try again later, or wait longer.",
        .replyTimedOut:
            "No reply came within the receive limit; wait longer, or ask again if asking twice does no harm.",
        .replyDropped:
            "The receiver got the message and let go of the reply right without replying; fix its handler.",
        .messageTooLarge: "The message is too large; send it in parts or pass a file descriptor.",
        .tooManyDescriptors: "The message carries too many descriptors; send them in several messages.",
        .descriptorsLost: "Descriptors were lost on the way; close some or raise the limit (ulimit -n) and ask again.",
        .descriptorLimit: "No file descriptor is left; close some or raise the limit (ulimit -n).",
        .nameTaken: "Another port holds the name; choose another name or stop its owner.",
        .nameUnknown: "No live port has the name; start its owner first.",
        .nameEmpty: "A port name must not be empty; choose one of 1 to 128 bytes of UTF-8.",
        .nameTooLong: "A port name has at most 128 bytes of UTF-8; choose a shorter one.",
        .nameHasNUL: "A port name must not contain a NUL byte; choose another.",
        .directoryUntrusted:
            "The directory must belong to this user and be closed to others, or be shared (3770, 2750, 0750); "
            + "name another in SWIFT_PORT_DIRECTORY.",
        .peerRefused: "The other side does not talk to this process; run both as the same user.",
        .malformedPacket:
            "What came over the connection is not of this library's format; check which program is at the other end.",
        .systemCallFailed: "The kernel refused what the operation needs; fix what it names, and try again.",
        .messageDropped:
            "The port's queue dropped the message for a newer one, as its owner wants; ask again if it still matters.",
        .forkedProcess: "The port belongs to the process that forked this one; make or look up a port after the fork.",
        .notTransferable:
            "A receive right cannot go to another process; send a right to a port of that process instead.",
        .noReplyRight: "The message expects no reply, or it was replied to already; reply once, to requests only.",
        .workerNotStarted:
            "The worker could not be started; correct the path, the permission or the limit that the kernel names.",
        .workerExited: "The worker ended without checking in; read what it writes to its standard error.",
        .checkInTimedOut: "The worker did not check in before the limit; wait longer, or shut it down.",
        .workerStillRunning: "The worker did not end before the limit; make its code return to its run loop.",
        .bootstrapInvalid:
            "The environment names a bootstrap port that cannot be; start the program as a worker, or take the variable out.",
        .tooManyConnections:
            "The port lets one process have this many connections and no more; let go of rights, or share one connection.",
        .connectionEnded:
            "The connection to the process has ended, so it cannot be opened any more; open it while the connection lives.",
        .descriptorsInFlight:
            "Too many descriptors of this user are on their way; have them received, or raise the limit (ulimit -n), and try again.",
        .cancelled: "The task that waited was cancelled; there is nothing left to do.",
        .remoteError: "The receiver answered with an error of its own; do what its code asks for.",
        .wouldDeadlock:
            "The request could never be answered: threads would wait for each other; wait in a mode in which the port is served.",
        .peerNotReading:
            "The other process did not read what it was sent, so its connection was ended; look it up again.",
        .malformedContent: "The message's bytes are not the value that was asked for; send and read the same type.",
        .watchLimit:
            "The kernel gives no further directory watch; raise a limit fs.inotify.max_user_…, or set PortNameServer.lookInterval.",
        .nameWaitTimedOut: "No live port got the name before the limit; start its owner, or wait longer.",
        .activationInvalid: "The socket that the supervisor declared for the name cannot be used; fix its unit.",
        .nameNotDeclared: "No supervisor handed this process a socket for the name; register the name instead.",
        .alreadyCheckedIn:
            "A port of this process has taken the supervisor's socket for the name before; use that port.",
        .servedElsewhere:
            "A port is served by a run loop or by a dispatcher; end the one before you ask for the other.",
        .nameNotAllowed:
            "The shared directory does not let this user register the name; have its owner add a line to the file rules in it.",
        .poolFull:
            "The pool had no room for the loan until the limit; release memory that was received, or give the pool more capacity.",
        .notWatchable:
            "The owner does not let its port be watched; have its program call MachPort.setAllowsWatching(true).",
    ]
}
