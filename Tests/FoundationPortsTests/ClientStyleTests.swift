// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import Synchronization
import TestSupport
import Testing

/// Small programs as they are written for Apple's systems, with no import but Foundation and FoundationPorts in what they do.
@Suite("CFMessagePort: programs", .leakCheck(warmingUp: PortBench.warmUp), .serialized)
struct ClientStyleTests {
    @Test("a second start of a single-instance application hands its files over, and the first opens them in order")
    func singleInstance() async throws {
        try await onLoopThread {
            let name = PortBench.name("app")
            let first = SingleInstance(name)
            let app = try #require(first.start(["a.txt"]))
            // The second start is another thread of this process: it would get the same port, so it asks first.
            let second = runOnThread { SingleInstance(name).handOver(["b.txt", "c.txt"]) }
            runLoop { second.hasEnded }
            #expect(try second.join())
            #expect(first.opened == ["a.txt", "b.txt", "c.txt"])
            // A start in another process finds the name taken, and hands over.
            let other = try ChildProcess(try builtProduct("cf-port-peer"), ["serve", name])
            #expect(try other.nextLine() == "taken")
            try other.waitForExit()
            let peer = try PortBench.peer("client", name)
            try peer.write("request 1 d.txt\n")
            runLoop { first.opened.count == 4 }
            #expect(try peer.nextLine() == "0 opened d.txt")
            try peer.waitForExit()
            app.stop()
            #expect(!SingleInstance(name).handOver(["e.txt"]))
        }
    }

    @Test("a command-line client talks to a menu-bar server: commands, their replies, and a quit")
    func commandLine() async throws {
        try await onLoopThread {
            let name = PortBench.name("menu")
            let server = try MenuBarServer(name)
            let client = try PortBench.peer("client", name)
            try client.write("request 1 title\nrequest 2 a title\nrequest 1 title\nrequest 3 \nrequest 9 \n")
            runLoop { server.hasQuit && server.count == 5 }
            var answers: [String] = []
            for _ in 0..<5 { answers.append(try client.nextLine() ?? "-") }
            #expect(answers == ["0 none", "0 ", "0 a title", "0 bye", "-3 -"])
            try client.waitForExit()
            #expect(CFMessagePortCreateRemote(nil, name as CFString) == nil)
        }
    }

    @Test("a server and a client on one thread, whose reply comes in a private mode of both")
    func privateMode() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let mode = CFRunLoopMode("com.example.private" as CFString)
            let port = try serve(name, in: mode) { _, _, data, _ in
                #expect(CFRunLoopCopyCurrentMode(CFRunLoopGetCurrent()) == mode)
                return reply(text(data) + "!")
            }
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            #expect(ask(remote, 1, "x", mode: mode) == Answer(0, "x!"))
            // In another mode nobody serves it.
            #expect(ask(remote, 1, "x", receive: 0.02) == Answer(-2))
            // The request of before is served first, and its reply goes nowhere.
            #expect(ask(remote, 1, "y", mode: mode) == Answer(0, "y!"))
            CFMessagePortInvalidate(port)
        }
    }

    @Test("a stream of 5,000 one-way messages of a process arrives in order, after the process has ended")
    func stream() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let got = Recorder<Int>("numbers")
            let port = try serve(name) { _, _, data, _ in
                got.append(Int(text(data)) ?? -1)
                return nil
            }
            let peer = try PortBench.peer("stream", name, "5000")
            runLoop { got.count == 5_000 }
            #expect(got.elements == Array(0..<5_000))
            #expect(try peer.waitForExit().end == .exited(0))
            CFMessagePortInvalidate(port)
        }
    }

    @Test("5,000 one-way messages to another process arrive in order")
    func streamToPeer() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let peer = try PortBench.peer("serve", name)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            for number in 0..<5_000 {
                let data = Data("\(number)".utf8) as CFData
                let status = CFMessagePortSendRequest(remote, 8, data, 60, 0, nil, nil)
                if status != 0 { Issue.record("status \(status) at \(number)") }
            }
            #expect(ask(remote, 9).text == (0..<5_000).map(String.init).joined(separator: " "))
            try peer.waitForExit()
        }
    }

    @Test(
        "four processes and four threads that ask one server at once get their own replies", arguments: [false, true])
    func crowd(onQueue: Bool) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let server = try PortBench.peer(onQueue ? "queue" : "serve", name)
            let clients = try (0..<4).map { _ in try PortBench.peer("client", name) }
            let rounds = 0..<50
            for (number, client) in clients.enumerated() {
                try client.write(rounds.map { "request 1 process \(number) \($0)\n" }.joined())
            }
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            let threads = (0..<4).map { number in
                runOnThread {
                    for round in rounds {
                        #expect(ask(remote, 1, "\(number) \(round)") == Answer(0, "\(number) \(round)"))
                    }
                }
            }
            for (number, client) in clients.enumerated() {
                for round in rounds { #expect(try client.nextLine() == "0 process \(number) \(round)") }
                try client.waitForExit()
            }
            for thread in threads { try thread.join() }
            try server.waitForExit()
        }
    }

    @Test("a port without a source gives a time-out within 64 sends of 0.2 s")
    func fills() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let peer = try PortBench.peer("hold", name)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            var statuses: [Int32] = []
            while statuses.count < 64, statuses.last ?? 0 == 0 {
                statuses.append(ask(remote, 1, send: 0.2, mode: nil).status)
            }
            #expect(statuses.last == kCFMessagePortSendTimeout)
            try peer.waitForExit()
        }
    }

    @Test("a request of 2 MiB gets an answer of 2 MiB, of this process and of another", arguments: [false, true])
    func large(isPeer: Bool) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let peer = isPeer ? try PortBench.peer("serve", name) : nil
            let server = isPeer ? nil : try PortThread(name) { _, _, data, _ in data.map { .passRetained($0) } }
            let sent = NSMutableData(length: 2 << 20)!
            for index in stride(from: 0, to: sent.length, by: 4093) {
                sent.mutableBytes.storeBytes(of: UInt8(index % 251), toByteOffset: index, as: UInt8.self)
            }
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            for _ in 0..<5 {
                var reply: Unmanaged<CFData>?
                let mode = CFRunLoopMode.defaultMode.rawValue
                #expect(CFMessagePortSendRequest(remote, 1, sent, 60, 60, mode, &reply) == 0)
                #expect(reply?.takeRetainedValue().isEqual(sent) == true)
            }
            try server?.end()
            try peer?.waitForExit()
        }
    }

    @Test("a slow handler gives a time-out, and its late reply is never given to one of 50 later requests")
    func slowHandler() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let released = Gate("the handler")
            let server = try PortThread(name) { _, id, _, _ in
                if id == -1 { released.wait() }
                return reply("\(id)")
            }
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            #expect(ask(remote, -1, receive: 0.05) == Answer(-2))
            released.open()
            for id in 0..<Int32(50) { #expect(ask(remote, id) == Answer(0, "\(id)")) }
            try server.end()
        }
    }

    @Test("a server that is stopped gives a receive time-out, and answers again once it is continued")
    func stoppedServer() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let peer = try PortBench.peer("serve", name)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            #expect(ask(remote, 1, "x") == Answer(0, "x"))
            peer.kill(SIGSTOP)
            #expect(ask(remote, 1, "late", receive: 0.1) == Answer(kCFMessagePortReceiveTimeout))
            #expect(CFMessagePortIsValid(remote))
            peer.kill(SIGCONT)
            #expect(ask(remote, 1, "y") == Answer(0, "y"))
            try peer.waitForExit()
        }
    }

    @Test("a client that is killed while it waits does not disturb its server")
    func killedClient() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let clients = Recorder<ChildProcess>("clients")
            let port = try serve(name) { _, id, _, _ in
                if id == 1, let client = clients.elements.last {
                    client.kill()
                    client.waitUntilKilled()
                }
                return reply("x")
            }
            for _ in 0..<3 {
                let client = try PortBench.peer("client", name)
                clients.append(client)
                try client.write("request 1 x\n")
                runLoop { !client.isRunning }
                try client.waitForExit()
            }
            #expect(ask(CFMessagePortCreateRemote(nil, name as CFString), 2) == Answer(0, "x"))
            CFMessagePortInvalidate(port)
        }
    }
}

extension ChildProcess {
    fileprivate func waitUntilKilled() {
        let ended = runOnThread { [self] in while isRunning { yieldThread() } }
        try? ended.join()
    }
}

/// An application that runs once: a second start gives its files to the first.
private final class SingleInstance: Sendable {
    private let name: String
    private let files = Mutex<[String]>([])
    private let port = Mutex<CFMessagePort?>(nil)

    init(_ name: String) { self.name = name }

    var opened: [String] { files.withLock { $0 } }

    /// Becomes the instance; nil when there is one.
    func start(_ arguments: [String]) -> SingleInstance? {
        var context = CFMessagePortContext(
            version: 0, info: Unmanaged.passUnretained(self).toOpaque(), retain: nil, release: nil,
            copyDescription: nil)
        var shouldFree = DarwinBoolean(false)
        let made = CFMessagePortCreateLocal(nil, name as CFString, Self.callback, &context, &shouldFree)
        guard let made, !shouldFree.boolValue else { return nil }
        let source = CFMessagePortCreateRunLoopSource(kCFAllocatorDefault, made, 0)
        CFRunLoopAddSource(CFRunLoopGetCurrent(), source, .commonModes)
        port.withLock { $0 = made }
        files.withLock { $0 += arguments }
        return self
    }

    private static let callback: CFMessagePortCallBack = { _, id, data, info in
        guard let info, let data, id == 1 else { return nil }
        let app = Unmanaged<SingleInstance>.fromOpaque(info).takeUnretainedValue()
        let file = String(decoding: data as Data, as: UTF8.self)
        app.files.withLock { $0.append(file) }
        return .passRetained(Data("opened \(file)".utf8) as CFData)
    }

    /// Gives the files to the instance.
    ///
    /// - Returns: false when there is none.
    func handOver(_ files: [String]) -> Bool {
        guard let remote = CFMessagePortCreateRemote(nil, name as CFString) else { return false }
        return files.allSatisfy { file in
            let data = Data(file.utf8) as CFData
            let mode = CFRunLoopMode.defaultMode.rawValue
            return CFMessagePortSendRequest(remote, 1, data, 30, 60, mode, nil) == kCFMessagePortSuccess
        }
    }

    func stop() { CFMessagePortInvalidate(port.withLock { $0 }) }
}

/// A server with a little state, whose context retains it.
private final class MenuBarServer: Sendable {
    private struct State: Sendable { var (title, hasQuit, count) = ("none", false, 1) }
    private let state = Mutex(State())

    var hasQuit: Bool { state.withLock { $0.hasQuit } }
    /// How many commands came, and one that comes too late.
    var count: Int { state.withLock { $0.count } }

    init(_ name: String) throws {
        var context = CFMessagePortContext()
        context.info = Unmanaged.passUnretained(self).toOpaque()
        context.retain = { info in
            guard let info else { return nil }
            return UnsafeRawPointer(Unmanaged<MenuBarServer>.fromOpaque(info).retain().toOpaque())
        }
        context.release = { info in if let info { Unmanaged<MenuBarServer>.fromOpaque(info).release() } }
        let port = try #require(
            CFMessagePortCreateLocal(
                nil, name as CFString,
                { port, id, data, info in
                    guard let info else { return nil }
                    let server = Unmanaged<MenuBarServer>.fromOpaque(info).takeUnretainedValue()
                    return server.answer(port, id, data as Data?).map { .passRetained($0 as CFData) }
                }, &context, nil))
        CFRunLoopAddSource(CFRunLoopGetCurrent(), CFMessagePortCreateRunLoopSource(nil, port, 0), .defaultMode)
    }

    private func answer(_ port: CFMessagePort?, _ id: Int32, _ data: Data?) -> Data? {
        state.withLock { state in
            state.count += 1
            switch id {
            case 1: return Data(state.title.utf8)
            case 2: state.title = String(decoding: data ?? Data(), as: UTF8.self)
            default: state.hasQuit = true
            }
            return nil
        } ?? quit(port)
    }

    private func quit(_ port: CFMessagePort?) -> Data? {
        if !hasQuit { return nil }
        CFMessagePortInvalidate(port)
        return Data("bye".utf8)
    }
}
