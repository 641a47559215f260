// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization
package import Testing

extension ChildProcess {
    /// Blocks until the child has written one more line to its standard output than this call has returned before.
    ///
    /// - Returns: the line, without its line feed; nil after the last one.
    /// - Throws: ``WatchdogExpired``.
    package func nextLine(sourceLocation: SourceLocation = #_sourceLocation) throws -> String? {
        while true {
            switch lines.take() {
            case .line(let line): return line
            case .ended: return nil
            case .wait(let event):
                guard Watchdog.wait(for: event, "\(name) wrote no line", sourceLocation: sourceLocation) else {
                    throw WatchdogExpired()
                }
            }
        }
    }
}

/// The output of a child, line by line.
final class OutputLines: Sendable {
    enum Next {
        case line(String)
        case ended
        case wait(ThreadEvent)
    }

    private struct State {
        var rest: [UInt8] = []
        var hasEnded = false
        var event: ThreadEvent?
    }

    private let state = Mutex(State())

    func append(_ bytes: [UInt8]) {
        change { $0.rest += bytes }
    }

    func end() {
        change { $0.hasEnded = true }
    }

    private func change(_ body: (inout State) -> Void) {
        let event = state.withLock { state in
            body(&state)
            return state.event.take()
        }
        event?.set()
    }

    /// The next line; the last one may lack its line feed.
    func take() -> Next {
        state.withLock { state in
            if let end = state.rest.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: state.rest[..<end], as: UTF8.self)
                state.rest.removeSubrange(...end)
                return .line(line)
            }
            if state.hasEnded {
                if state.rest.isEmpty { return .ended }
                defer { state.rest = [] }
                return .line(String(decoding: state.rest, as: UTF8.self))
            }
            let event = state.event ?? ThreadEvent()
            state.event = event
            return .wait(event)
        }
    }
}
