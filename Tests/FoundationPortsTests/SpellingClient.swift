// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A client in the spelling of Apple's Swift interface: it must compile unchanged, here in Swift 5 and, as a copy, in the
// tests in Swift 6. It uses this package's other modules, too.

import Foundation
import FoundationPorts
import MessagePort
import NamedPortServer

private extension CFData {
    var text: String { String(data: self as Data, encoding: .utf8) ?? "" }
}

/// A server and its client in one process.
package final class SpellingClient {
    private static let callback: CFMessagePortCallBack = { port, msgid, cfData, info in
        guard let cfData, let data = cfData as Data? else { return nil }
        let reply = Data("\(msgid):".utf8) + data
        return Unmanaged.passRetained(reply as CFData)
    }

    private static func answer(
        _ port: CFMessagePort?, _ msgid: Int32, _ data: CFData?, _ info: UnsafeMutableRawPointer?
    ) -> Unmanaged<CFData>? {
        Unmanaged.passRetained(Data("static \(msgid)".utf8) as CFData)
    }

    private lazy var lazyCallback: CFMessagePortCallBack = { _, msgid, data, info in
        guard let info else { return nil }
        let client = Unmanaged<SpellingClient>.fromOpaque(info).takeUnretainedValue()
        return Unmanaged.passRetained(Data("lazy \(msgid) \(client.name.isEmpty)".utf8) as CFData)
    }

    private static let seen = SpellingLog()
    private let name: String
    private var port: CFMessagePort?
    private var source: CFRunLoopSource?
    private var loop: CFRunLoop?

    package init(name: String) { self.name = name }

    deinit { stop() }

    /// What the calls have given, as text.
    package func run() -> [String] {
        var results: [String] = []
        var context = CFMessagePortContext(version: 0, info: nil, retain: nil, release: nil, copyDescription: nil)
        context.info = Unmanaged.passUnretained(self).toOpaque()
        var shouldFree: DarwinBoolean = false
        guard
            let port = CFMessagePortCreateLocal(
                kCFAllocatorDefault, name as CFString, Self.callback, &context, &shouldFree)
        else { return ["no port"] }
        self.port = port
        results.append("free \(shouldFree.boolValue)")
        CFMessagePortSetInvalidationCallBack(port) { _, info in
            guard let info else { return }
            let client = Unmanaged<SpellingClient>.fromOpaque(info).takeUnretainedValue()
            SpellingClient.seen.append("invalidated \(client.name.isEmpty)")
        }
        let source = CFMessagePortCreateRunLoopSource(nil, port, 0)
        self.source = source
        self.loop = CFRunLoopGetCurrent()
        CFRunLoopAddSource(RunLoop.current.getCFRunLoop(), source, .commonModes)

        var fetched = CFMessagePortContext()
        CFMessagePortGetContext(port, &fetched)
        results.append("context \(fetched.info == context.info)")

        guard let remote = CFMessagePortCreateRemote(nil, name as CFString) else { return ["no remote"] }
        var reply: Unmanaged<CFData>?
        let status = CFMessagePortSendRequest(
            remote, 42, "hello".data(using: .utf8)! as CFData, 1.0, 10.0, CFRunLoopMode.defaultMode.rawValue, &reply)
        if status == kCFMessagePortSuccess, let data = reply?.takeRetainedValue() as Data? {
            results.append(String(decoding: data, as: UTF8.self))
        }
        let oneWay = CFMessagePortSendRequest(remote, 43, Data() as CFData, 0, 0, nil, nil)
        results.append("one way \(oneWay == KERN_SUCCESS)")
        let none: Data? = nil
        var second: Unmanaged<CFData>?
        _ = CFMessagePortSendRequest(
            remote, 44, none as CFData?, 1, 10, CFRunLoopMode.defaultMode.rawValue, &second)
        results.append(second.map { "\(($0.takeRetainedValue() as Data).count) bytes" } ?? "nothing")

        results.append("name \(CFMessagePortGetName(port) as String == name)")
        results.append("mode \(CFRunLoopMode.defaultMode.rawValue as String)")
        switch CFRunLoopRunInMode(.defaultMode, 0, false) {
        case .finished, .stopped, .timedOut, .handledSource: break
        @unknown default: break
        }
        // Results of C functions may be ignored.
        CFMessagePortIsValid(port)
        CFMessagePortSetName(port, "\(name).other" as CFString)
        CFMessagePortGetTypeID()
        autoreleasepool { results.append("remote \(CFMessagePortIsRemote(remote)) \(CFMessagePortIsRemote(port))") }

        let ports: Set<CFMessagePort> = [port, remote, port]
        results.append("ports \(ports.count) equal \(CFEqual(port, port)) hash \(CFHash(port) == CFHash(port))")
        stop()
        results += SpellingClient.seen.takeAll()
        results.append("valid \(CFMessagePortIsValid(port))")
        return results + otherModules() + nested() + members()
    }

    /// Callbacks that are members: a static function, and a lazy property.
    private func members() -> [String] {
        var context = CFMessagePortContext()
        context.info = Unmanaged.passUnretained(self).toOpaque()
        let ports = [
            CFMessagePortCreateLocal(nil, "\(name).static" as CFString, SpellingClient.answer, nil, nil),
            CFMessagePortCreateLocal(nil, "\(name).lazy" as CFString, lazyCallback, &context, nil),
        ]
        return ports.map { port in
            CFRunLoopAddSource(CFRunLoopGetCurrent(), CFMessagePortCreateRunLoopSource(nil, port, 0), .defaultMode)
            defer { CFMessagePortInvalidate(port) }
            var reply: Unmanaged<CFData>?
            CFMessagePortSendRequest(port, 5, nil, 1, 10, CFRunLoopMode.defaultMode.rawValue, &reply)
            return reply.map { $0.takeRetainedValue().text } ?? "no reply"
        }
    }

    private func stop() {
        if let source { CFRunLoopSourceInvalidate(source) }
        if let port { CFMessagePortInvalidate(port) }
        loop.map(CFRunLoopStop)
        (port, source, loop) = (nil, nil, nil)
    }

    /// The package's own ports beside Foundation's, in one file.
    private func otherModules() -> [String] {
        let port: NSMachPort = NSMachPort()
        let message: FoundationPorts.MessagePort = MessagePort()
        let own = MachPort()
        defer {
            port.invalidate()
            message.invalidate()
            own.invalidate()
        }
        let found = try? PortNameServer.shared.lookUp("\(name).unknown")
        return ["own \(found == nil) \(message.isValid) \(NSMessagePort.self == FoundationPorts.MessagePort.self)"]
    }

    private func nested() -> [String] {
        func callback(
            _ port: CFMessagePort?, _ msgid: Int32, _ data: CFData?, _ info: UnsafeMutableRawPointer?
        ) -> Unmanaged<CFData>? {
            .passRetained("nested \(msgid) \(data?.text ?? "-")".data(using: .utf8)! as CFData)
        }
        let cfName = "\(name).nested" as CFString
        guard let port = CFMessagePortCreateLocal(nil, cfName, callback, nil, nil) else { return [] }
        let source = CFMessagePortCreateRunLoopSource(nil, port, 0)
        CFRunLoopAddSource(CFRunLoopGetCurrent(), source, CFRunLoopMode("private" as CFString))
        var reply: Unmanaged<CFData>?
        let request = "x" as NSString
        CFMessagePortSendRequest(
            CFMessagePortCreateRemote(nil, cfName), 1, request.data(using: String.Encoding.utf8.rawValue) as CFData?,
            1, 10, "private" as CFString, &reply)
        CFMessagePortInvalidate(port)
        return [reply.map { $0.takeRetainedValue().text } ?? "no reply"]
    }

    /// A literal in a method of the main actor uses what the actor protects.
    @MainActor private final class Controller {
        var count = 0
        var port: CFMessagePort?

        func start(_ name: String) {
            port = CFMessagePortCreateLocal(
                nil, name as CFString,
                { _, _, data, info in
                    if let info { Unmanaged<Controller>.fromOpaque(info).takeUnretainedValue().count += 1 }
                    return nil
                }, nil, nil)
            let source = CFMessagePortCreateRunLoopSource(nil, port, 0)
            CFRunLoopAddSource(RunLoop.main.getCFRunLoop(), source, .commonModes)
        }

        func stop() { CFMessagePortInvalidate(port) }
    }

    /// Whether the controller's port was made, and ended.
    @MainActor package static func runController(_ name: String) -> Bool {
        let controller = Controller()
        controller.start(name)
        defer { controller.stop() }
        return controller.port != nil && CFMessagePortIsValid(controller.port)
    }
}

/// What callbacks have seen.
private final class SpellingLog: @unchecked Sendable {
    private let lock = NSLock()
    private var lines: [String] = []

    func append(_ line: String) {
        lock.lock()
        lines.append(line)
        lock.unlock()
    }

    func takeAll() -> [String] {
        lock.lock()
        defer { lock.unlock() }
        let taken = lines
        lines = []
        return taken
    }
}
