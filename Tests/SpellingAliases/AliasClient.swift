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

    /// Calls that fit CoreFoundation's function and FoundationPorts', or differ in the result.
    package static func runInBoth(_ name: String) -> [String] {
        guard let port = CFMessagePortCreateLocal(nil, name as CFString, callback, nil, nil),
            let loop = CFRunLoopGetCurrent()
        else { return [] }
        defer { CFMessagePortInvalidate(port) }
        let source = CFMessagePortCreateRunLoopSource(nil, port, 0)
        CFRunLoopAddSource(loop, source, .commonModes)
        let remote = CFMessagePortCreateRemote(nil, name as CFString)
        var results: [String] = []

        let portName = CFMessagePortGetName(port)
        results.append("\(portName == name as CFString) \(CFMessagePortGetName(remote) as String == name)")
        results.append("\(CFMessagePortGetName(nil) == nil) \(CFMessagePortCreateRemote(nil, nil) == nil)")
        results.append("\(CFMessagePortSetName(port, nil))")
        CFRunLoopPerformBlock(CFRunLoopGetCurrent(), CFRunLoopMode.defaultMode.rawValue) {
            let mode = CFRunLoopCopyCurrentMode(loop)
            results.append("\(mode == .defaultMode) \(CFRunLoopCopyCurrentMode(CFRunLoopGetCurrent()) == .defaultMode)")
        }
        CFRunLoopPerformBlock(loop, CFRunLoopMode.commonModes.rawValue, { results.append("common") })
        let several: NSArray = [CFRunLoopMode.defaultMode.rawValue, "other" as CFString]
        CFRunLoopPerformBlock(loop, several) { results.append("one of several") }
        CFRunLoopPerformBlock(loop, CFRunLoopMode.defaultMode.rawValue as CFTypeRef) { results.append("any object") }
        CFRunLoopRunInMode(.defaultMode, 0, false)
        results.append("\(CFRunLoopCopyCurrentMode(CFRunLoopGetCurrent()) == nil)")
        let modes = CFRunLoopCopyAllModes(loop)
        let hasDefault = modes?.contains { $0 as? String == CFRunLoopMode.defaultMode.rawValue as String }
        results.append("\(hasDefault ?? false) \(CFRunLoopCopyAllModes(loop).count > 0)")

        results.append("\(CFMessagePortSendRequest(remote, 1, nil, 1, 1, nil, nil))")
        CFMessagePortSendRequest(remote, 1, nil, 1, 1, nil, nil)
        let bytes: [UInt8] = [1, 2]
        let data = CFDataCreate(nil, bytes, bytes.count)
        results.append("\(data?.length ?? -1) \(CFDataGetLength(data)) \(CFDataCreate(nil, nil, 0) != nil)")
        results.append("\(CFMessagePortSendRequest(remote, 1, CFDataCreate(nil, bytes, 2), 1, 1, nil, nil))")
        return results
    }
}
