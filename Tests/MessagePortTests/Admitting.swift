// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort

extension MailboxState {
    /// As the real one, for a message of which the test keeps nothing.
    mutating func admit(
        _ message: MachMessage, exceedingLimit: Bool = false, waiting sender: BlockedSender? = nil
    ) -> Admission {
        var offered: MachMessage? = message
        return admit(&offered, exceedingLimit: exceedingLimit, waiting: sender)
    }
}

extension LocalPort {
    func admit(_ message: MachMessage) -> MailboxState.Admission {
        var offered: MachMessage? = message
        return admit(&offered)
    }
}
