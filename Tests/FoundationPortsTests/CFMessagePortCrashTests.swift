// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import TestSupport
import Testing

extension ChildProcess {
    /// Stops the child, and waits until it is stopped.
    fileprivate func pause() {
        kill(SIGSTOP)
        var information = siginfo_t()
        while waitid(P_PID, id_t(processID), &information, WSTOPPED | WNOWAIT) == -1 && errno == EINTR {}
    }
}

@Suite(
    "CFMessagePort: stopped clients and callbacks that trap",
    .leakCheck(settles: true, warmingUp: warmUpMachPorts), .serialized)
struct CFMessagePortCrashTests {
    @Test(
        "a client that is stopped while it waits gets its reply once it is continued, and others get theirs meanwhile",
        arguments: [1, 8 << 20], ["loop", "queue"])
    func stoppedClient(length: Int, server: String) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let (asked, stopped) = (Gate("the request"), Gate("the client is stopped"))
            let callback: CFMessagePortCallBack = { _, id, data, _ in
                if id != 1 { return data.map { .passRetained($0) } }
                asked.open()
                stopped.wait()
                return .passRetained(NSData(data: Data(count: length)))
            }
            let thread = server == "loop" ? try PortThread(name, callback) : nil
            let port = thread?.port ?? CFMessagePortCreateLocal(nil, name as CFString, callback, nil, nil)
            let queue = DispatchQueue(label: "test")
            if thread == nil { CFMessagePortSetDispatchQueue(port, queue) }

            let (client, other) = (try PortBench.peer("client", name), try PortBench.peer("client", name))
            try client.write("size 1 x\n")
            #expect(asked.wait())
            client.pause()
            stopped.open()
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            for number in 0..<20 {
                #expect(ask(remote, 2, "\(number)") == Answer(0, "\(number)"))
                try other.write("request 3 \(number)\n")
                let line = try other.nextLine()
                #expect(line == "0 \(number)")
            }
            client.kill(SIGCONT)
            let line = try client.nextLine()
            #expect(line == "0 \(length)")
            for client in [client, other] { try client.waitForExit() }
            if let thread { try thread.end() } else { CFMessagePortInvalidate(port) }
            PortBench.finish(queue)
        }
    }

    @Test(
        "D-S17: a callback of another process that traps gives the client that waits -5, and its name is free",
        arguments: ["serve", "queue"])
    func trap(server: String) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let peer = try ChildProcess(
                try builtProduct("cf-port-peer"), [server, name], environment: ["SWIFT_BACKTRACE": "enable=no"])
            let ready = try peer.nextLine()
            #expect(ready == "ready")
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            let (holds, client) = (try PortBench.peer("client", name), try PortBench.peer("client", name))
            // The second request waits behind the callback for the first.
            try holds.write("request 3 first\n")
            let line = try peer.nextLine()
            #expect(line == "holding first")
            try client.write("request 13 x\n")
            try peer.write("go\n")
            let answered = try holds.nextLine()
            #expect(answered == "0 first")
            let lines = try (client.nextLine(), peer.waitForExit())
            #expect(lines.0 == "-5 -")
            #expect(lines.1.errors.contains("a callback that traps"))
            if case .signalled = lines.1.end {} else { Issue.record("\(lines.1.end)") }
            #expect(!CFMessagePortIsValid(remote) && ask(remote, 1) == Answer(kCFMessagePortIsInvalid))
            #expect(CFMessagePortCreateRemote(nil, name as CFString) == nil)
            let heir = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, nil, nil)
            #expect(heir != nil)
            CFMessagePortInvalidate(heir)
            for client in [holds, client] { try client.waitForExit() }
        }
    }

    @Test("D-N5, D-S17: a delegate of another process that traps ends the request with -5, and its port here")
    func delegateTraps() async throws {
        let name = freshName("trap")
        let peer = try ChildProcess(
            try builtProduct("mach-port-peer"), ["echo", name], environment: ["SWIFT_BACKTRACE": "enable=no"])
        let ready = try await offThePool { try peer.nextLine() }
        #expect(ready == "ready")
        let port = try #require(NSMachBootstrapServer.shared.port(forName: name))
        let posted = Recorder<Bool>()
        let observer = NotificationCenter.default.addObserver(
            forName: Port.didBecomeInvalidNotification, object: port, queue: nil
        ) { _ in posted.append(true) }
        try await onLoopThread {
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            #expect(ask(remote, 96, "x", receive: 1_000) == Answer(-5))
        }
        #expect(await posted.waitUntilCount(1) == [true])
        #expect(!port.isValid)
        NotificationCenter.default.removeObserver(observer)
        let result = try await peer.waitForExit()
        #expect(result.errors.contains("a delegate that traps"))
    }
}
