// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation

/// The processor time and wake-ups of a thread so far, as the kernel counts them.
struct ThreadUse {
    /// How often it was put on a processor.
    var wakeUps = 0
    /// Nanoseconds on a processor.
    var time = 0

    /// Reads the kernel's counters for a thread of a process. The first thread has the number of the process.
    init(process: Int32, thread: Int32) throws {
        let path = "/proc/\(process)/task/\(thread)/schedstat"
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            throw NotAvailable("\(path) cannot be read")
        }
        let fields = text.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
        guard fields.count == 3 else { throw BenchmarkFailure("\(path) is not as expected") }
        (time, wakeUps) = (fields[0], fields[2])
    }

    /// The use of several threads over a number of seconds.
    static func of(_ threads: [(process: Int32, thread: Int32)], seconds: Int) throws -> [ThreadUse] {
        func now() throws -> [ThreadUse] { try threads.map { try ThreadUse(process: $0.process, thread: $0.thread) } }
        let before = try now()
        Thread.sleep(forTimeInterval: Double(seconds))
        return zip(try now(), before).map { after, before in
            var used = after
            used.wakeUps -= before.wakeUps
            used.time -= before.time
            return used
        }
    }
}
