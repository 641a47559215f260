// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// What a process may lack: /proc, a directory that it may write, descriptors, processes. Each gives a clear
/// error, or a documented slower path.
@Suite("Systems that lack something", .leakCheck(warmingUp: makeSpareDescriptor)) struct PoorSystemTests {
    private static let nobody: uid_t = 65534
    private static let isRoot = sysUserID() == 0
    /// Whether this process may have a tree of mounts of its own.
    private static let mayMount = isRoot && mayUnshare()

    private static func mayUnshare() -> Bool {
        (try? ChildProcess("/usr/bin/unshare", ["-m", "/bin/mount", "--make-rprivate", "/"]).waitForExit().end)
            == .exited(0)
    }

    /// A peer that runs after a shell's command in a tree of mounts of its own.
    private func peer(after command: String, _ arguments: [String], at fixture: NameFixture) throws -> ChildProcess {
        try ChildProcess(
            "/usr/bin/unshare",
            [
                "-m", "/bin/sh", "-c", "mount --make-rprivate / && \(command) && exec \"$@\"", "sh",
                builtProduct("port-test-peer"),
            ]
                + arguments,
            environment: [
                "XDG_RUNTIME_DIR": fixture.scratch.path, "PORT_RING": "always", "LD_LIBRARY_PATH": libraries,
                "PORT_TEST_ARGUMENTS": arguments.joined(separator: " "),
                "PORT_TEST_PROGRAM": builtProduct("port-test-peer"),
                "LD_ORIGIN_PATH": String(builtProduct("port-test-peer").dropLast("/port-test-peer".count)),
            ].merging(withoutLeakSearch) { $1 })
    }

    /// The path of this process's Swift runtime: programs find theirs, and their arguments, through /proc.
    private var libraries: String {
        get throws {
            let file = try sysOpen("/proc/self/maps", .reading)
            let maps = String(decoding: try sysReadAll(file.raw), as: UTF8.self)
            let line = maps.split(separator: "\n").first { $0.contains("libswiftCore.so") }
            let path = line.flatMap { $0.firstIndex(of: "/").map($0.suffix(from:)) } ?? ""
            return String(path.prefix(max(0, path.count - "/libswiftCore.so".count)))
        }
    }

    @Test(
        "without /proc a service serves, a client asks, names come and go, a worker is launched",
        .enabled(if: mayMount, "only root can unmount"),
        .disabled(if: hasAddressSanitizer, "the address sanitizer needs /proc"))
    func noProc() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let server = try peer(after: "umount -l /proc", ["serve", fixture.directory, "name"], at: fixture)
            try server.expect("ready")
            let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
            for _ in 0..<200 { #expect(try port.ask(1, "abc") == "cba") }
            let stay = ["connect-and-stay", fixture.directory, "name", "2"]
            let other = try peer(after: "umount -l /proc", stay, at: fixture)
            try other.expect("replies 2")
            for end in [server, other] { #expect(try end.hasRings()) }
            #expect(try other.waitForExit().end == .exited(0))
            let client = try peer(
                after: "umount -l /proc", ["ask", fixture.directory, "name", "1", "abc"], at: fixture)
            try client.expect("reply cba")
            #expect(try client.waitForExit().end == .exited(0))
            let waiter = try peer(after: "umount -l /proc", ["wait", fixture.directory, "later"], at: fixture)
            try waiter.expect("waiting")
            let late = MachPort()
            try fixture.names.register(late, name: "later")
            try waiter.expect("found")
            #expect(try waiter.waitForExit().end == .exited(0))
            late.invalidate()
            #expect(try server.waitForExit().end == .exited(0))
            let launcher = try peer(after: "umount -l /proc", ["launch"], at: fixture)
            try launcher.expect("reply cba")
            try launcher.expect("worker ended with status 0")
            #expect(try launcher.waitForExit().end == .exited(0))
        }
    }

    @Test(
        "without /proc a port in a shared directory is made for its group, too",
        .enabled(if: mayMount, "only root can unmount"),
        .disabled(if: hasAddressSanitizer, "the address sanitizer needs /proc"))
    func sharedWithoutProc() async throws {
        try await withSharedFixture(mode: 0o3770) { fixture in
            let server = try peer(
                after: "umount -l /proc", ["serve", fixture.word, "name"], at: NameFixture(fixture.scratch))
            try server.expect("ready")
            for name in try sysList(fixture.path + "/sockets") where !name.hasSuffix(".lock") {
                let status = try #require(try sysStatus(atPath: "\(fixture.path)/sockets/\(name)"))
                #expect(status.permissions == 0o660 && status.group == Strangers.group)
            }
            let port = try RemoteMessagePort(name: "name", nameServer: PortNameServer(sharedDirectory: fixture.path))
            #expect(try port.ask(1, "abc") == "cba")
            port.invalidate()
            #expect(try server.waitForExit().end == .exited(0))
        }
    }

    @Test(
        "in a directory that cannot be written names are found and not registered",
        .enabled(if: mayMount, "only root can mount"))
    func readOnly() async throws {
        try await withFixture(leaving: .anything) { fixture in
            try withServer("name", at: fixture) { _ in
                let directory = fixture.directory
                let command = "mount --bind \(directory) \(directory) && mount -o remount,bind,ro \(directory)"
                let client = try peer(after: command, ["hold", directory], at: fixture)
                try client.expect("ready")
                try client.write("find name\nlist all\ntake other\n")
                try client.expect("found")
                try client.expect("names name")
                try client.expect("error systemCallFailed")
                #expect(try client.waitForExit().end == .exited(0))
                let asker = try peer(after: command, ["ask", directory, "name", "1", "abc"], at: fixture)
                try asker.expect("reply cba")
                #expect(try asker.waitForExit().end == .exited(0))
            }
        }
    }

    @Test(
        "a service that may write only small files serves without rings; one that may write none registers no name",
        .disabled(if: hasThreadSanitizer, "the thread sanitizer keeps a large file itself"))
    func smallFiles() async throws {
        try await withFixture(leaving: .anything) { fixture in
            func limited(_ size: Int) throws -> ChildProcess {
                try ChildProcess(
                    "/usr/bin/prlimit",
                    ["--fsize=\(size):\(size)", builtProduct("port-test-peer"), "serve", fixture.directory, "name"],
                    environment: ["XDG_RUNTIME_DIR": fixture.scratch.path, "PORT_RING": "always"])
            }
            let server = try limited(100 << 10)
            try server.expect("ready")
            let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
            for _ in 0..<200 { #expect(try port.ask(1, "abc") == "cba") }
            #expect(try server.waitForExit().end == .exited(0))
            let poor = try limited(0)
            try poor.expect("error systemCallFailed")
            #expect(try poor.waitForExit().end == .exited(0))
        }
    }

    @Test("a service with 64 descriptors refuses clients beyond them, goes on, and serves when they have gone")
    func fewDescriptors() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let server = try ChildProcess(
                "/usr/bin/prlimit",
                ["--nofile=64:64", try builtProduct("port-test-peer"), "serve", fixture.directory, "name"],
                environment: ["XDG_RUNTIME_DIR": fixture.scratch.path])
            try server.expect("ready")
            let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
            #expect(try port.ask(1, "abc") == "cba")
            for _ in 0..<3 {
                // Each is a connection of its own, of this process.
                try withPeer(["connect-many", fixture.directory, "name", "100"], at: fixture) { busyPeer in
                    try busyPeer.expect("error tooManyConnections")
                }
                #expect(try port.ask(1, "abc") == "cba")
            }
            #expect(try server.waitForExit().end == .exited(0))
        }
    }

    @Test(
        "a user that may have no further process gets an error for a worker, and ports that serve",
        .enabled(if: isRoot, "only root can become another user"))
    func fewProcesses() async throws {
        try await withFixture(leaving: .anything) { fixture in
            chmod(fixture.scratch.path, 0o755)
            let directory = fixture.scratch.path("of-nobody")
            #expect(mkdir(directory, 0o700) == 0)
            #expect(chown(directory, Self.nobody, Self.nobody) == 0)
            func limited(_ arguments: [String]) throws -> ChildProcess {
                try ChildProcess(
                    "/usr/bin/prlimit",
                    ["--nproc=1:1", builtProduct("port-test-peer"), "as", "\(Self.nobody)"] + arguments,
                    environment: ["XDG_RUNTIME_DIR": directory].merging(withoutLeakSearch) { $1 })
            }
            let launcher = try limited(["launch"])
            try launcher.expect("error workerNotStarted")
            #expect(try launcher.waitForExit().end == .exited(0))
            let server = try limited(["serve", directory, "name"])
            try server.expect("ready")
            let client = try ChildProcess(
                builtProduct("port-test-peer"), ["as", "\(Self.nobody)", "ask", directory, "name", "1", "abc"])
            try client.expect("reply cba")
            #expect(try client.waitForExit().end == .exited(0))
            #expect(try server.waitForExit().end == .exited(0))
        }
    }

    @Test(
        "a directory that another user gets while names are held is used no more; existing connections go on",
        .enabled(if: isRoot, "only root can give files away"))
    func otherOwner() async throws {
        try await withFixture(leaving: .anything) { fixture in
            try withServer("name", at: fixture) { _ in
                let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
                #expect(try port.ask(1, "abc") == "cba")
                let mine = MachPort()
                try fixture.names.register(mine, name: "mine")
                for path in [fixture.directory, fixture.directory + "/names"] {
                    #expect(chown(path, Self.nobody, Self.nobody) == 0)
                    #expect(
                        failure { try fixture.names.register(MachPort(), name: "other") }?.code == .directoryUntrusted)
                    #expect(failure { _ = try fixture.names.lookUp("name") }?.code == .directoryUntrusted)
                    #expect(try port.ask(1, "abc") == "cba")
                    #expect(chown(path, 0, 0) == 0)
                }
                #expect(chmod(fixture.directory + "/names", 0o770) == 0)
                #expect(failure { _ = try fixture.names.list() }?.code == .directoryUntrusted)
                mine.invalidate()
                #expect(chmod(fixture.directory + "/names", 0o700) == 0)
                #expect(try fixture.names.list().map(\.name) == ["name"])
            }
        }
    }
}
