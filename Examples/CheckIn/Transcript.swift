// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation

/// Writes what happens to standard output: each line is one write, so lines of two processes do not mix.
enum Transcript {
    static func line(_ text: String) {
        do {
            try FileHandle.standardOutput.write(contentsOf: Data((text + "\n").utf8))
        } catch {
            leave("standard output: \(reason(error))")
        }
    }

    /// Notes what a side of the conversation did.
    static func note(_ side: String, _ what: String) {
        line("  \(side) (\(whereabouts)): \(what)")
    }

    /// The calling process and thread.
    static var whereabouts: String {
        let link = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
        return "process \(getpid()), thread \(link?.split(separator: "/").last ?? "?")"
    }
}
