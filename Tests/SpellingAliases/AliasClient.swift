// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A client whose files import CoreFoundation beside FoundationPorts.

import CoreFoundation
import Foundation
import FoundationPorts

package enum AliasClient {
    static let callback: CFMessagePortCallBack = { _, msgid, data, _ in
        guard let data else { return nil }
        return Unmanaged.passRetained(Data("\(msgid) ".utf8) + (data as Data) as CFData)
    }

    /// A request, and its reply's text.
    package static func run(_ name: String) -> String {
        var context = CFMessagePortContext()
        var shouldFree: DarwinBoolean = true
        let port = CFMessagePortCreateLocal(nil, name as CFString, callback, &context, &shouldFree)
        let source = CFMessagePortCreateRunLoopSource(nil, port, 0)
        CFRunLoopAddSource(RunLoop.current.getCFRunLoop(), source, .defaultMode)
        defer { CFMessagePortInvalidate(port) }
        let remote = CFMessagePortCreateRemote(nil, name as CFString)
        var reply: Unmanaged<CFData>?
        let mode: CFString = CFRunLoopMode.defaultMode.rawValue
        let status = CFMessagePortSendRequest(remote, 3, Data("abc".utf8) as CFData, 1, 10, mode, &reply)
        guard status == kCFMessagePortSuccess else { return "no reply" }
        let text = (reply?.takeRetainedValue() as Data?).map { String(decoding: $0, as: UTF8.self) } ?? "nothing"
        return "\(text) \(!shouldFree.boolValue && CFRunLoopRunInMode(.defaultMode, 0, true) != .stopped)"
    }
}
