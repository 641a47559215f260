// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import NamedPortServer

/// Shows on a terminal how much of a long message has been sent.
struct Progress: ~Copyable {
    /// A shorter message is sent before a user could read the line.
    private static let shortest = 1 << 20
    private static let interval = Duration.milliseconds(100)

    private let isOver = ThreadEvent()
    private let thread: SystemThread?

    /// - Parameters:
    ///   - total: how many bytes there are.
    ///   - sent: returns how many of them have been sent; called on another thread.
    init(of total: Int, sent: @escaping @Sendable () -> Int) {
        guard total >= Self.shortest, isatty(STDERR_FILENO) == 1 else {
            thread = nil
            return
        }
        thread = try? sysStartThread { [isOver] in
            // A message that is sent sooner shows nothing.
            if isOver.wait(until: .after(Self.interval)) { return }
            repeat { Self.tell(Self.line(sent(), of: total)) } while !isOver.wait(until: .after(Self.interval))
            Self.tell("")
        }
    }

    /// The message has been sent, or will not be.
    consuming func end() {
        isOver.set()
        thread?.join()
    }

    static func line(_ sent: Int, of total: Int) -> String {
        let share = min(100, total == 0 ? 100 : sent * 100 / total)
        return "sent \(HumanSize.text(min(sent, total))) of \(HumanSize.text(total)), \(share) %"
    }

    private static func tell(_ line: String) {
        try? sysWriteAll(STDERR_FILENO, Array("\r\u{1B}[K\(line)".utf8))
    }
}
