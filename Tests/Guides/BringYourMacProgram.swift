// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CoreFoundation
import Foundation
import FoundationPorts

// As in a program whose files import CoreFoundation.
typealias CFString = FoundationPorts.CFString
typealias CFData = FoundationPorts.CFData
typealias CFRunLoopMode = FoundationPorts.CFRunLoopMode
typealias CFMessagePortCallBack = FoundationPorts.CFMessagePortCallBack

func bringYourMacProgram() {
    let port = serve("org.example.mac")
    ask("org.example.mac", "hello")
    CFMessagePortInvalidate(port)
}

func serve(_ name: String) -> CFMessagePort? {
    let port = CFMessagePortCreateLocal(
        nil, name as CFString,
        { _, msgid, data, _ in
            let text = String(decoding: data! as Data, as: UTF8.self)
            return Unmanaged.passRetained(Data("\(msgid): \(text.uppercased())".utf8) as CFData)
        }, nil, nil)
    let source = CFMessagePortCreateRunLoopSource(nil, port, 0)
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, .commonModes)
    return port
}

func ask(_ name: String, _ text: String) {
    guard let port = CFMessagePortCreateRemote(nil, name as CFString) else { return }
    var reply: Unmanaged<CFData>?
    let status = CFMessagePortSendRequest(
        port, 7, Data(text.utf8) as CFData, 1, 5, CFRunLoopMode.defaultMode.rawValue, &reply)
    let answer = reply.map { String(decoding: $0.takeRetainedValue() as Data, as: UTF8.self) }
    print("status \(status), the reply is \(answer ?? "none")")
}
