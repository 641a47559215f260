// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// Lines that threads say, and that another waits for.
package final class Lines: Sendable {
    private let lines = Mutex<[String]>([])
    private let said = ThreadEvent()  // guards itself; set after each line, cleared before each check

    package init() {}

    /// Appends a line.
    package func say(_ line: String) {
        lines.withLock { $0.append(line) }
        said.set()
    }

    /// Waits until `count` lines were said.
    ///
    /// - Returns: all that were said; fewer than asked for when the wait lasted too long.
    package func wait(for count: Int) -> [String] {
        let deadline = MonotonicInstant.after(serviceTimeout)
        while true {
            said.clear()
            let all = lines.withLock { $0 }
            if all.count >= count { return all }
            guard said.wait(until: deadline) else { return all }
        }
    }
}
