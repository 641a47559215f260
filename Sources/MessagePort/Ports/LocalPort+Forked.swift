// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// After fork(2) the child has a copy of each port, but not the threads that may have held its locks, and it shares the open
// sockets with its parent. So it uses none of them: every call that can fail says `forkedProcess`, the others do nothing, and
// before either a lock is taken. A counter that the C library raises in each new child tells; it costs no system call.

import Synchronization

extension LocalPort {
    /// Looks at the queue.
    func look<Result: Sendable>(or value: Result, _ body: (inout MailboxState) -> Result) -> Result {
        isInherited ? value : state.withLock { body(&$0.mailbox) }
    }

    /// Keeps what is the parent's from being closed and removed.
    func outliveProcess() {
        // SAFETY: nothing is done with the reference: this object is never released.
        _ = unsafe Unmanaged.passRetained(self)
    }
}
