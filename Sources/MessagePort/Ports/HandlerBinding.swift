// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore

/// Who calls a port's handler, by which source. It takes a pointer's room.
enum HandlerBinding: Sendable {
    case nobody
    /// Loops. The source keeps the port; it ends when it is in no loop any more.
    case loops(RunLoopSource)
    /// The same, but it keeps the port, or what owns it, only while it is in a loop.
    case looseLoops(RunLoopSource)
    /// As before, but somebody else may have the source too: it stays when it is in no loop.
    case others(RunLoopSource)
    /// The source enqueues blocks that call the handler, and does not call that on its loop.
    case dispatcher(RunLoopSource)

    var source: RunLoopSource? {
        switch self {
        case .nobody: nil
        case .loops(let source), .looseLoops(let source), .others(let source), .dispatcher(let source): source
        }
    }

    var isDispatcher: Bool {
        if case .dispatcher = self { true } else { false }
    }
}
