// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import Synchronization

/// A server of CFMessagePort.
final class Server: Sendable {
    private let name: String
    private let port: CFMessagePort
    private let numbers = Mutex<[String]>([])

    /// Makes the port; says `taken` and ends when that is not possible.
    init(_ name: String) {
        self.name = name
        let box = Box()
        let made = CFMessagePortCreateLocal(
            nil, name as CFString,
            { port, id, data, _ in
                box.server?.answer(port, id, data ?? NSData()).map { .passRetained($0) }
            }, nil, nil)
        guard let made else {
            say("taken")
            exit(0)
        }
        port = made
        box.server = self
    }

    /// @unchecked Sendable: set before the port is served.
    private final class Box: @unchecked Sendable { var server: Server? }

    /// Serves on the main run loop.
    func run() {
        addSource()
        Thread.detachNewThread { [self] in
            while let words = readLine() {
                if words == "invalidate" { CFMessagePortInvalidate(port) }
                if words == "go" { released.signal() }
                say("done \(words)")
            }
            exit(0)
        }
        say("ready")
        CFRunLoopRun()
        say("stopped")
    }

    /// Serves on a concurrent queue.
    func runOnQueue() {
        CFMessagePortSetDispatchQueue(port, DispatchQueue.global())
        say("ready")
        while let line = readLine() { if line == "go" { released.signal() } }
    }

    /// Serves nothing until the line `serve`.
    func hold() {
        say("ready")
        while let line = readLine() {
            if line == "serve" { run() }
        }
    }

    private func addSource() {
        let source = CFMessagePortCreateRunLoopSource(nil, port, 0)
        CFRunLoopAddSource(CFRunLoopGetCurrent(), source, .commonModes)
    }

    private let released = DispatchSemaphore(value: 0)

    private func answer(_ port: CFMessagePort?, _ id: Int32, _ data: NSData) -> NSData? {
        // Swift's Data copies an NSData slowly: only its beginning.
        let start = data.subdata(with: NSRange(location: 0, length: min(data.length, 256)))
        let text = String(decoding: start, as: UTF8.self)
        switch id {
        case 1: return data
        case 2: return nil
        case 3:  // answers after the line `go`
            say("holding \(text)")
            released.wait()
            return data
        case 4:
            CFMessagePortInvalidate(port)
            CFRunLoopStop(CFRunLoopGetCurrent())
            return Data("bye".utf8) as NSData
        case 5:
            say("got \(text)")
            return nil
        case 6: return back(to: text) as NSData?
        case 7: exit(0)
        case 8:
            numbers.withLock { $0.append(text) }
            return nil
        case 9: return Data(numbers.withLock { $0.joined(separator: " ") }.utf8) as NSData
        case 10: return Data("\(getpid())".utf8) as NSData
        case 11: return last(port)
        case 12:  // the same after the line `go`
            say("holding \(text)")
            released.wait()
            return last(port)
        case 13: fatalError("a callback that traps")
        default: return Data("\(id) \(data.length)".utf8) as NSData
        }
    }

    /// Ends the service, and the program; a reply for which a connection has no room.
    private func last(_ port: CFMessagePort?) -> NSData? {
        CFMessagePortInvalidate(port)
        CFRunLoopStop(CFRunLoopGetCurrent())
        return NSMutableData(length: 2 << 20)
    }

    /// Asks the port `NAME` of `DEPTH NAME`, which waits for this answer, and adds to its reply.
    private func back(to text: String) -> Data? {
        let words = text.split(separator: " ")
        guard words.count == 2, let depth = Int(words[0]) else { return nil }
        if depth == 0 { return Data("0".utf8) }
        let other = CFMessagePortCreateRemote(nil, String(words[1]) as CFString)
        var reply: Unmanaged<CFData>?
        let status = CFMessagePortSendRequest(
            other, 6, Data("\(depth - 1) \(name)".utf8) as CFData, 10, 60, CFRunLoopMode.defaultMode.rawValue, &reply)
        let got = reply.map { String(decoding: $0.takeRetainedValue() as Data, as: UTF8.self) } ?? "status \(status)"
        return Data("\(depth) \(got)".utf8)
    }
}
