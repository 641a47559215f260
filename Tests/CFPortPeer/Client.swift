// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts

/// A client of CFMessagePort: each line of standard input is `request ID TEXT`, `send ID TEXT`, or `size ID TEXT` for a
/// request of whose reply only the number of bytes is said.
struct Client {
    private let name: String

    init(_ name: String) { self.name = name }

    func run() {
        guard let remote = CFMessagePortCreateRemote(nil, name as CFString) else { return say("no port") }
        say("ready")
        while let words = nextWords() {
            guard words.count == 3, let id = Int32(words[1]) else { continue }
            let mode = words[0] == "send" ? nil : CFRunLoopMode.defaultMode.rawValue
            var reply: Unmanaged<CFData>?
            let status = CFMessagePortSendRequest(remote, id, Data(words[2].utf8) as CFData, 10, 60, mode, &reply)
            let data = reply?.takeRetainedValue()
            let text = words[0] == "size" ? nil : data.map { String(decoding: $0 as Data, as: UTF8.self) }
            say("\(status) \(text ?? data.map { "\($0.length)" } ?? "-")")
        }
    }

    /// Sends numbers from 0 on, and ends at once.
    func stream(_ count: Int) {
        let remote = CFMessagePortCreateRemote(nil, name as CFString)
        for number in 0..<count {
            let status = CFMessagePortSendRequest(remote, 8, Data("\(number)".utf8) as CFData, 60, 0, nil, nil)
            if status != kCFMessagePortSuccess { return say("status \(status) at \(number)") }
        }
        say("sent")
    }
}
