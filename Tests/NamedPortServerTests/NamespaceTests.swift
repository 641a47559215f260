// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Processes in user, process, mount and IPC namespaces of their own, which see only the directory of names of the
// test's directory: as in two containers that share a volume.

import ContractServices
import Foundation
import Glibc
@testable import MessagePort
@testable import NamedPortServer
import PortSystem
import TestSupport
import Testing

/// Runs its words where only the directory `$0` is left of its parent directory.
private let apart =
    "mount --bind \"$0\" /mnt && mount -t tmpfs tmpfs \"${0%/*}\" && mkdir \"$0\" && mount --bind /mnt \"$0\""
    + " && exec \"$@\""

/// The users of the processes outside: root and another one, if the system lets them make such namespaces.
private let users = [0, Strangers.service].filter { user in
    guard sysUserID() == 0, let peer = try? builtProduct("port-test-peer") else { return false }
    let words = ["as", "\(user)", "exec"] + unshareWords + ["mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return (try? ChildProcess(peer, words).waitForExit().end) == .exited(0)
}

/// Starts a command in namespaces of its own; the process that waits for it is outside, and its end kills the command.
private let unshareWords = [
    "unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc", "--mount", "--ipc",
]

/// The words of a command in namespaces of its own.
private func wordsApart(in directory: String, _ words: [String]) -> [String] {
    unshareWords + ["sh", "-c", apart, directory] + words
}

@Suite(
    "Namespaces", .leakCheck(warmingUp: makeSpareDescriptor),
    .enabled(if: users.contains(0), "needs root, and namespaces (unshare(1))"))
struct NamespaceTests {
    @Test(
        "a process of another user is root in its own namespaces, and that user outside",
        .enabled(if: users.contains(Strangers.service), "the system lets only root make user namespaces"))
    func otherUser() async throws {
        let words =
            ["as", "\(Strangers.service)", "exec"] + unshareWords + ["sh", "-c", "id -u; cat /proc/self/uid_map"]
        let result = try await ChildProcess(builtProduct("port-test-peer"), words).waitForExit()
        let numbers = result.output.split { $0 == " " || $0 == "\n" }.compactMap { UInt32($0) }
        #expect(numbers == [0, 0, Strangers.service, 1])
    }

    /// A directory of names of one user.
    struct Border: Sendable {
        let scratch: ScratchDirectory
        let path: String
        let user: UInt32
        /// The directory that a process in namespaces of its own shares with the outside.
        let common: String

        /// Runs `body` beside a `port-test-peer`, inside or outside.
        func with<Result>(
            inside: Bool, _ arguments: [String], rings: String? = nil, endsAs end: ProcessEnd = .exited(0),
            sourceLocation: SourceLocation = #_sourceLocation, _ body: (ChildProcess) throws -> Result
        ) throws -> Result {
            let peer = try builtProduct("port-test-peer")
            // The exit status of unshare(1) after the command was killed depends on its version.
            let killed = end == .signalled(SIGKILL) ? ["sh", "-c", "\"$@\"; exit 0", "sh"] : []
            let words = inside ? ["exec"] + killed + wordsApart(in: common, [peer] + arguments) : arguments
            let end = inside ? .exited(0) : end
            return try withPeer(
                ["as", "\(user)"] + words, at: NameFixture(scratch), rings: rings, endsAs: end,
                sourceLocation: sourceLocation, body)
        }

        /// Kills a peer that `with` has started to be killed.
        func kill(_ peer: ChildProcess, isInside: Bool) throws {
            guard isInside else { return peer.kill() }
            // The shell waits for unshare(1), whose end kills the process inside.
            let children = try sysOpen("/proc/\(peer.processID)/task/\(peer.processID)/children", .reading)
            let text = String(decoding: try sysReadAll(children.raw), as: UTF8.self)
            let unshare = try #require(pid_t(text.filter { !$0.isWhitespace }))
            #expect(Glibc.kill(unshare, SIGKILL) == 0)
        }

        /// The first line of a `port-test-peer`.
        func first(
            inside: Bool, _ arguments: [String], rings: String? = nil,
            sourceLocation: SourceLocation = #_sourceLocation
        ) throws -> String? {
            try with(inside: inside, arguments, rings: rings, sourceLocation: sourceLocation) {
                try $0.nextLine(sourceLocation: sourceLocation)
            }
        }
    }

    private func withBorder(
        _ user: UInt32, _ body: @escaping @Sendable (Border) throws -> Void
    ) async throws {
        try await onNewThread {
            try withScratchDirectory(leaving: .anything) { scratch in
                let common = scratch.path("common")
                chmod(scratch.path, 0o711)
                try #require(mkdir(common, 0o700) == 0 && chown(common, user, user) == 0)
                try body(Border(scratch: scratch, path: common + "/ports", user: user, common: common))
            }
        }
    }

    static let sides = users.flatMap { user in [false, true].map { (user, $0) } }

    @Test(
        "requests and notes cross the border of namespaces in both directions, over sockets and rings", arguments: sides
    )
    func requests(user: UInt32, isServerInside: Bool) async throws {
        try await withBorder(user) { border in
            for rings in ["never", "always"] {
                let log = border.common + "/log-\(rings)"
                let serve = ["log", border.path, "store", log]
                try border.with(inside: isServerInside, serve, rings: rings) { server in
                    try server.expect("ready")
                    let stream = ["stream", border.path, "store", "500"]
                    try border.with(inside: !isServerInside, stream, rings: rings) { _ in }
                }
                let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
                #expect(lines.map(String.init) == (0..<500).map(String.init))
            }
        }
    }

    @Test("a worker checks in across the border, and is called back", arguments: [false, true])
    func checkIn(isByName: Bool) async throws {
        try await withBorder(0) { border in
            let names = try PortNameServer(directory: border.path)
            let port = MachPort()
            try names.register(port, name: "main")
            let way = isByName ? "name" : "right"
            try border.with(inside: true, ["check-in", border.path, "main", way]) { _ in
                let message = try #require(try port.receive(within: longTimeout))
                let right = try message.replyPort ?? names.lookUp(message.text)
                // It is the first process of its namespace, and has another number here.
                #expect(try right.request(MachMessage(id: Act.process)).text == "1")
                #expect(message.sender.processID != 1 && message.sender.processID != 0)
                if try canOpenPeers() {
                    let process = try message.sender.openProcess()
                    #expect(process.startTime != nil)
                    #expect(process.startTime == sysProcessStart(message.sender.processID))
                    #expect(try right.owner() == message.sender)
                }
            }
            port.invalidate()
        }
    }

    @Test(
        "a name that is held on the other side is taken, free when its owner is killed, and passes over",
        arguments: sides)
    func names(user: UInt32, isInside: Bool) async throws {
        try await withBorder(user) { border in
            try border.with(inside: !isInside, ["hold", border.path]) { second in
                try second.expect("ready")
                func take() throws -> String? {
                    try second.write("take store\n")
                    return try second.nextLine()
                }
                try border.with(inside: isInside, ["hold", border.path], endsAs: .signalled(SIGKILL)) { first in
                    try first.take("store")
                    #expect(try take()?.hasPrefix("error nameTaken") == true)
                    try second.write("find store\n")
                    try second.expect("found")
                    try border.kill(first, isInside: isInside)
                    // Inside, it ends after the process outside that waits for it.
                    var said = try take()
                    while said?.hasPrefix("error nameTaken") == true, MonotonicInstant.now < Watchdog.deadline {
                        said = try take()
                    }
                    #expect(said == "taken")
                }
                try border.with(inside: isInside, ["hold", border.path]) { third in
                    try third.expect("ready")
                    try third.write("find store\n")
                    try third.expect("found")
                }
            }
        }
    }

    @Test("a process inside is notified of the death of one outside, on its loop")
    func noticeInside() async throws {
        try await withBorder(0) { border in
            try border.with(inside: false, ["serve", border.path, "store"], endsAs: .signalled(SIGKILL)) { server in
                try server.expect("ready")
                try border.with(inside: true, ["notice", border.path, "store"]) { inside in
                    try inside.expect("ready")
                    server.kill()
                    try inside.expect("died")
                }
            }
        }
    }

    @Test("a process that awaits deaths, or waits for a reply, learns that a process inside was killed")
    func deathInside() async throws {
        try await withBorder(0) { border in
            let names = try PortNameServer(directory: border.path)
            try border.with(inside: true, ["serve", border.path, "store"], endsAs: .signalled(SIGKILL)) { server in
                try server.expect("ready")
                let right = try names.lookUp("store")
                let died = Counter()
                try withLoopThread { loop in
                    try right.notifyWhenDead(on: loop) { _ in died.increment() }
                    // Seen from inside it has the number 1, and no process there can kill it.
                    let inside = try right.request(MachMessage(id: Act.process)).sender.processID
                    kill(inside, SIGKILL)
                    #expect(died.waitUntilCount(1))
                }
            }
            #expect(failure { _ = try names.lookUp("store") }?.code == .nameUnknown)
        }
    }

    @Test("a process inside learns that the process outside to which it sent a request was killed")
    func deathOutside() async throws {
        try await withBorder(0) { border in
            let serve = ["serve", border.path, "store"]
            try border.with(inside: false, serve, endsAs: .signalled(SIGKILL)) { server in
                try server.expect("ready")
                let ask = ["ask", border.path, "store", "\(Act.die)", "abc"]
                let answer = try border.first(inside: true, ask)
                #expect(answer == "error peerDied")
            }
        }
    }

    @Test(
        "processes without a number here are distinguished, and each is charged for its own",
        arguments: ["never", "always"])
    func quotas(rings: String) async throws {
        try await withBorder(0) { border in
            // The server inside sees those outside with the number 0.
            try border.with(inside: true, ["connections", "2", "serve", border.path, "store"], rings: rings) { server in
                try server.expect("ready")
                let stay = ["connect-and-stay", border.path, "store", "2"]
                try border.with(inside: false, stay, rings: rings) { first in
                    try first.expect("replies 2")
                    #expect(try first.hasRings() == (rings == "always"))
                    // A process that the kernel does not identify is charged for each connection by itself.
                    let most = try distinguishesProcesses() ? "error tooManyConnections" : "replies 3"
                    #expect(
                        try border.first(inside: false, ["connect-many", border.path, "store", "3"], rings: rings)
                            == most)
                    #expect(try border.first(inside: false, stay, rings: rings) == "replies 2")
                }
            }
        }
    }

    @Test("a process is opened across the border, also where it has no number", arguments: [false, true])
    func opened(isServerInside: Bool) async throws {
        guard try canOpenPeers() else { return }
        try await withBorder(0) { border in
            try border.with(inside: isServerInside, ["serve", border.path, "store"]) { server in
                try server.expect("ready")
                try border.with(inside: !isServerInside, ["owner", border.path, "store"]) { client in
                    let number = try #require(try client.nextLine())
                    // Inside, neither this side's numbers nor its /proc entries exist, and no signal leaves it.
                    #expect((number == "owner 0") == !isServerInside)
                    try client.expect(isServerInside ? "a start" : "no start")
                    try client.expect("groups")
                    try client.expect(isServerInside ? "signal" : "no signal: \(EINVAL)")
                    try client.expect("runs")
                }
            }
        }
    }

    /// Whether the kernel opens the process at the other end of a socket.
    private func canOpenPeers() throws -> Bool {
        let (near, far) = try sysPacketSocketPair()
        defer { withExtendedLifetime(far) {} }
        do throws(SystemError) {
            _ = try sysPeerProcess(near.rawValue)
            return try sysPeerGroups(near.rawValue).count >= 0
        } catch {
            return false
        }
    }

    /// Whether the kernel gives each process a unique number, also for a process that does not see it. Older kernels do
    /// not.
    private func distinguishesProcesses() throws -> Bool {
        let (near, far) = try sysPacketSocketPair()
        defer { withExtendedLifetime(far) {} }
        return (try? sysPeerProcessInode(near.rawValue)) ?? nil != nil
    }

    @Test("a user without a number in a namespace is admitted there by no port, not as the overflow user either")
    func overflow() async throws {
        try await withSharedFixture(mode: 0o3770, owner: Strangers.service) { fixture in
            let peer = try builtProduct("port-test-peer")
            // Inside, only the service has a number: 0.
            let policy = ["policy", "users:0,65534,\(Strangers.client)", "serve", fixture.word, "store"]
            let serve = ["exec"] + wordsApart(in: fixture.path, [peer] + policy)
            try fixture.with(Strangers.service, serve) { service in
                try service.expect("ready")
                let ask = ["ask", fixture.word, "store", "1", "abc"]
                #expect(try fixture.first(Strangers.client, ask) == "error peerRefused")
                #expect(try fixture.first(Strangers.service, ask) == "reply cba")
            }
        }
    }
}
