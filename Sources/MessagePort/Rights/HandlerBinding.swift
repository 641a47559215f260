// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore

/// What calls a port's handler, through which source. It is as large as a pointer.
enum HandlerBinding: Sendable {
    case none
    /// Loops. The source retains the port; it ends when it is in no loop any more.
    case owning(RunLoopSource)
    /// Loops, but the source retains the port, or its owner, only while it is in a loop.
    case unowned(RunLoopSource)
    /// As `unowned`, but other code may have the source too: it stays when it is in no loop.
    case shared(RunLoopSource)
    /// The source enqueues blocks that call the handler, and never calls it on its loop.
    case dispatcher(RunLoopSource)

    var source: RunLoopSource? {
        switch self {
        case .none: nil
        case .owning(let source), .unowned(let source), .shared(let source), .dispatcher(let source): source
        }
    }

    var isDispatcher: Bool {
        if case .dispatcher = self { true } else { false }
    }
}
