// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

extension LocalPort {
    package func send(_ offered: inout MachMessage?, until deadline: SendDeadline) throws(PortError) {
        try checkProcess()
        var hasRoom = false
        switch admitHere(&offered, false, .never, &hasRoom) {
        case .accepted: return
        case .dead: throw PortError(.deadName)
        case .full where deadline.mayWait: try sendWaiting(&offered, until: deadline.instant)
        case .full, .wait: throw PortError(.sendTimedOut)
        }
    }

    private func sendWaiting(_ offered: inout MachMessage?, until deadline: MonotonicInstant) throws(PortError) {
        spinForRoom(until: deadline)
        switch admit(&offered, waiting: .thread) {
        case .accepted: return
        case .dead: throw PortError(.deadName)
        case .full: throw PortError(.sendTimedOut)
        case .wait(let sender):
            let wasWoken = sender.wait(until: deadline)
            try stopWaiting(sender, PortError(.sendTimedOut))
            if wasWoken { sender.leaveToOthers() }
        }
    }

    nonisolated(nonsending) package func send(_ message: MachMessage, waiting wait: SendWait) async throws(PortError) {
        try checkProcess()
        var offered: MachMessage? = message
        switch admit(&offered, waiting: wait.mayWait ? .task(wait) : .never) {
        case .accepted: return
        case .dead: throw PortError(.deadName)
        case .full: throw PortError(.sendTimedOut)
        case .wait(let sender):
            var failure = PortError(.deadName)
            while state.withLock({ $0.mailbox.isWaiting(sender) }) {
                do throws(PortError) {
                    try await wait.wait()
                } catch {
                    failure = error
                    break
                }
            }
            try stopWaiting(sender, failure)
        }
    }

    /// A sender's wait for room is over.
    ///
    /// - Throws: when its message was not queued: `deadName` when the port has ended, otherwise the failure.
    private func stopWaiting(_ sender: BlockedSender, _ failure: PortError) throws(PortError) {
        let (stillWaited, isDead) = state.withLock { state in
            (state.mailbox.stopWaiting(sender), state.mailbox.isDead)
        }
        // When the port ends, those who wait stay in its line: they were not served.
        if stillWaited { throw isDead ? PortError(.deadName) : failure }
    }

    /// Queues a message and rings the receivers when they may be asleep. It is taken when it is queued, or its sender is
    /// put in line: a wait that times out does not give it back.
    func admit(
        _ offered: inout MachMessage?, exceedingLimit: Bool = false, waiting patience: BlockingMode = .never
    ) -> MailboxState.Admission {
        var hasRoom = false
        return admit(&offered, exceedingLimit, patience, &hasRoom)
    }

    /// As above, for a message for which there was room when it was read from its socket.
    ///
    /// - Parameters:
    ///   - offered: the message.
    ///   - hasRoom: set to whether there is room for another.
    /// - Returns: whether it was taken: not when the port is dead.
    func admitFromSocket(_ offered: inout MachMessage?, _ hasRoom: inout Bool) -> Bool {
        if case .accepted = admit(&offered, true, .never, &hasRoom) { true } else { false }
    }

    private func admit(
        _ offered: inout MachMessage?, _ exceedingLimit: Bool, _ patience: BlockingMode, _ hasRoom: inout Bool
    ) -> MailboxState.Admission {
        isInherited ? .dead : admitHere(&offered, exceedingLimit, patience, &hasRoom)
    }

    /// As above, where it is known that the port is this process's.
    private func admitHere(
        _ offered: inout MachMessage?, _ exceedingLimit: Bool, _ patience: BlockingMode, _ hasRoom: inout Bool
    ) -> MailboxState.Admission {
        if let interception, offered?.envelope.hasReplyRight == true, let message = offered, !isDead,
            interception.takes(message)
        {
            return .accepted(wasEmpty: false)
        }
        // Set where there is something: what is returned is copied, and that counts references.
        var sequel: EnqueueAction?
        let admission = state.withLock { state in
            let admission = state.mailbox.admit(&offered, exceedingLimit: exceedingLimit, waiting: patience)
            if case .accepted(let wasEmpty) = admission {
                if wasEmpty || state.hasExtras || readsAhead {
                    sequel = EnqueueAction(
                        sources: wasEmpty && !state.isAttended ? state.sources : SourceList(), task: state.nextTask(),
                        dropped: readsAhead ? state.mailbox.takeDropped() : [])
                }
                if exceedingLimit { hasRoom = state.mailbox.hasRoomForSockets }
            }
            return admission
        }
        if let sequel { follow(sequel) }
        return admission
    }

    /// What is to be done because a message was queued; mostly nothing, and then there is none.
    private struct EnqueueAction {
        var sources: SourceList
        var task: WaitingTask?
        var dropped: [MachMessage]
    }

    private func follow(_ sequel: EnqueueAction) {
        sequel.sources.ring()
        sequel.task?.wake()
        for message in sequel.dropped { message.replyTarget?.fail(PortError(.messageDropped)) }
    }
}
