// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import PortSystem
import TestSupport
import Testing

@Suite("Replies of a process that exits (D-S16)", .machPorts, .serialized) struct ProcessExitTests {
    /// A server whose callback ends the port and the loop, and so the program, and replies with 2 MiB.
    enum Server: String, CaseIterable, Sendable {
        case messagePort, machPort

        func start(_ name: String) throws -> ChildProcess {
            if self == .messagePort { return try PortBench.peer("serve", name) }
            let child = try ChildProcess(try builtProduct("mach-port-peer"), ["echo", name])
            #expect(try child.nextLine() == "ready")
            return child
        }

        var number: Int32 { self == .messagePort ? 11 : 97 }
    }

    @Test(
        "D-S16: a reply for which the connection has no room arrives, though its process exits at once",
        arguments: Server.allCases)
    func largeReply(server: Server) async throws {
        let name = PortBench.name()
        let peer = try server.start(name)
        try await onLoopThread {
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            var reply: Unmanaged<CFData>?
            let status = CFMessagePortSendRequest(
                remote, server.number, nil, 60, 60, CFRunLoopMode.defaultMode.rawValue, &reply)
            #expect(status == kCFMessagePortSuccess && reply?.takeRetainedValue().length == 2 << 20)
            CFMessagePortInvalidate(remote)
        }
        // The end of its input would end it, too.
        await peer.waitUntilEnded()
        #expect(try await peer.waitForExit().end == .exited(0))
    }

    @Test("D-S16: a client that never reads its reply does not keep the process")
    func neverRead() async throws {
        let name = PortBench.name()
        let server = try PortBench.peer("serve", name)
        let client = try PortBench.peer("client", name)
        try client.write("request 12 x\n")
        #expect(try server.nextLine() == "holding x")
        stop(client)
        try server.write("go\n")
        await server.waitUntilEnded()
        client.kill(SIGCONT)
        #expect(try client.nextLine() == "-5 -")
        for peer in [server, client] { #expect(try await peer.waitForExit().end == .exited(0)) }
    }

    /// Waits until a process is stopped.
    private func stop(_ process: ChildProcess) {
        process.kill(SIGSTOP)
        var information = siginfo_t()
        while waitid(P_PID, id_t(process.processID), &information, WSTOPPED | WNOWAIT) == -1 && errno == EINTR {}
    }
}
