// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts

/// A process as on a Mac: a CFMessagePort on CFRunLoop. It launches the native process, answers its request, and then asks
/// a port of that process.
func runMacSide() throws {
    guard let port = CFMessagePortCreateLocal(nil, "org.example.mac" as CFString, answer, nil, nil) else { return }
    CFRunLoopAddSource(CFRunLoopGetCurrent(), CFMessagePortCreateRunLoopSource(nil, port, 0), .commonModes)
    let native = try Process.run(URL(fileURLWithPath: "/proc/self/exe"), arguments: ["native"])
    CFRunLoopRun()
    native.waitUntilExit()
    CFMessagePortInvalidate(port)
}

@Sendable private func answer(
    _ port: CFMessagePort?, _ msgid: Int32, _ data: CFData?, _ info: UnsafeMutableRawPointer?
) -> Unmanaged<CFData>? {
    let text = String(decoding: (data as Data?) ?? Data(), as: UTF8.self)
    say("mac: message \(msgid): \(text)")
    if msgid == 1 { return .passRetained(Data("CFMessagePort answers".utf8) as CFData) }

    // The text is the name of a native port.
    let remote = CFMessagePortCreateRemote(nil, text as CFString)
    var reply: Unmanaged<CFData>?
    let status = CFMessagePortSendRequest(
        remote, 3, Data("CFMessagePort asks".utf8) as CFData, 10, 10, "waits" as CFString, &reply)
    let answered = reply.map { String(decoding: $0.takeRetainedValue() as Data, as: UTF8.self) }
    say("mac: status \(status), the reply: \(answered ?? "")")
    CFRunLoopStop(CFRunLoopGetCurrent())
    return nil
}
