// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import Glibc
@testable import NamedPortServer
import PortSystem
import TestSupport
import Testing

/// A system call that fails, and the resulting error.
struct NameFault: Sendable, CustomTestStringConvertible {
    let call: SystemCall
    let number: CInt
    let code: PortError.Code

    init(_ call: SystemCall, _ number: CInt, _ code: PortError.Code) {
        self.call = call
        self.number = number
        self.code = code
    }

    var testDescription: String { "\(call) with errno \(number)" }
}

@Suite("Names when the system refuses", .leakCheck(warmingUp: makeSpareDescriptor))
struct NameFaultTests {
    @Test(
        "registering fails cleanly at whichever call is refused, and leaves no name, file, lock or descriptor, 100 times",
        arguments: [
            NameFault(.write, ENOSPC, .systemCallFailed), NameFault(.open, ENOSPC, .systemCallFailed),
            NameFault(.open, EMFILE, .descriptorLimit), NameFault(.socket, EMFILE, .descriptorLimit),
            NameFault(.socket, ENFILE, .descriptorLimit), NameFault(.epoll_create, EMFILE, .descriptorLimit),
            NameFault(.bind, ENOSPC, .systemCallFailed), NameFault(.rename, ENOSPC, .systemCallFailed),
            NameFault(.listen, ENOBUFS, .systemCallFailed), NameFault(.epoll_ctl, ENOSPC, .systemCallFailed),
        ])
    func registering(fault: NameFault) async throws {
        try await withFixture { fixture in
            let warm = MachPort()
            try fixture.names.register(warm, name: "warm")
            let sockets = try sysList(fixture.directory + "/sockets").count
            let calls = try Self.calls(of: fault.call, in: fixture)
            #expect(calls > 0)
            for round in 0..<100 {
                let port = MachPort()
                let before = openDescriptors()
                let error = failure {
                    _ = try SystemCallFaults.with([.init(fault.call, .fail(fault.number), skipping: round % calls)]) {
                        try fixture.names.register(port, name: "name")
                    }
                }
                #expect(error?.code == fault.code, "round \(round)")
                #expect(error?.systemError?.code == fault.number)
                #expect(try sysList(fixture.directory + "/names") == ["warm"], "round \(round)")
                port.invalidate()
                #expect(openDescriptors() == before)
                #expect(try sysList(fixture.directory + "/sockets").count == sockets)
            }
            let port = MachPort()
            try fixture.names.register(port, name: "name")
            port.invalidate()
            warm.invalidate()
        }
    }

    /// How often a registration makes a call.
    private static func calls(of call: SystemCall, in fixture: NameFixture) throws -> Int {
        let port = MachPort()
        let calls = try SystemCallFaults.counting { try fixture.names.register(port, name: "counted") }.calls
        port.invalidate()
        return calls[call, default: 0]
    }

    @Test("interrupted calls are repeated: registering, looking up, listing and waiting succeed, 100 times")
    func interrupted() async throws {
        try await withFixture { fixture in
            let rules = [
                SystemCall.open, .write, .read, .fcntl, .fstat, .socket, .bind, .listen, .rename, .unlink, .connect,
            ]
            for _ in 0..<100 {
                let port = MachPort()
                _ = try SystemCallFaults.with(rules.map { .init($0, .fail(EINTR), times: 3) }) {
                    try fixture.names.register(port, name: "name")
                    #expect(try fixture.names.waitFor("name", within: longTimeout) == port.makeSendRight())
                    #expect(try fixture.names.list().map(\.name) == ["name"])
                    port.invalidate()
                }
                #expect(try fixture.names.list() == [])
            }
        }
    }

    @Test("a short write is completed")
    func shortWrite() async throws {
        try await withFixture { fixture in
            let port = MachPort()
            _ = try SystemCallFaults.with([.init(.write, .shorten(to: 1), times: 50)]) {
                try fixture.names.register(port, name: "name")
            }
            #expect(try fixture.names.lookUp("name") == port.makeSendRight())
            port.invalidate()
        }
    }

    @Test(
        "on a full disk a name is refused and leaves no file, 100 times; with room again it is registered",
        .enabled(if: FullDisk.reason == nil, Comment(rawValue: FullDisk.reason ?? "")))
    func fullDisk() async throws {
        try await withFixture { fixture in
            let disk = try FullDisk.any(at: fixture.scratch.path("disk"))
            defer { disk.remove() }
            let names = try PortNameServer(directory: disk.path + "/ports")
            // Its socket is there; its record needs a page.
            let port = MachPort()
            try names.register(port, name: "first")
            let fill = disk.path + "/fill"
            disk.fill(fill)
            for round in 0..<100 {
                let error = failure { try names.register(port, name: "name") }
                #expect(error?.systemError?.code == ENOSPC, "round \(round)")
                #expect(try sysList(disk.path + "/ports/names") == ["first"])
            }
            #expect(failure { _ = try names.lookUp("name") }?.code == .nameUnknown)
            unlink(fill)
            try names.register(port, name: "name")
            #expect(try names.lookUp("name") == port.makeSendRight())
            port.invalidate()
        }
    }

    @Test("a name whose file cannot be removed is unknown and free all the same, 100 times")
    func notRemoved() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let port = MachPort()
            for round in 0..<100 {
                try fixture.names.register(port, name: "name")
                let (isFreed, hits) = SystemCallFaults.with([.init(.unlink, .fail(EROFS))]) {
                    fixture.names.unregister("name")
                }
                #expect(isFreed)
                #expect(hits == 1)
                #expect(try sysList(fixture.directory + "/names") == ["name"], "round \(round)")
                #expect(failure { _ = try fixture.names.lookUp("name") }?.code == .nameUnknown, "round \(round)")
                #expect(try fixture.names.list() == [])
            }
            port.invalidate()
        }
    }

    @Test("a file that cannot be opened holds no name: the others are listed, watched and registered")
    func unreadable() async throws {
        try await withFixture { fixture in
            let port = MachPort()
            for name in ["one", "two", "three"] { try fixture.names.register(port, name: name) }
            // The first call opens the directory.
            let rule = SystemCallFaults.Rule(.open, .fail(EACCES), skipping: 1)
            let (listed, hits) = try SystemCallFaults.with([rule]) { try fixture.names.list().count }
            #expect(listed == 2)
            #expect(hits == 1)
            let monitor = try NameMonitor(fixture.directory)
            let first = try SystemCallFaults.with([rule]) { try (monitor.nextText(), monitor.nextText()) }
            #expect(first.hits == 1)
            #expect(try monitor.nextText() == nil)
            port.invalidate()
        }
    }

    @Test(
        "as another user than root: a file without permissions hides no name",
        .enabled(if: sysUserID() == 0, "needs root"))
    func withoutPermission() async throws {
        try await withFixture(leaving: .anything) { fixture in
            chmod(fixture.scratch.path, 0o711)
            let directory = fixture.scratch.path("theirs")
            try FileManager.default.createDirectory(
                atPath: directory + "/names", withIntermediateDirectories: true)
            let file = directory + "/names/secret"
            try Data("x".utf8).write(to: URL(fileURLWithPath: file))
            chmod(file, 0)
            for path in [directory, directory + "/names", file] { chown(path, 65534, 65534) }
            for path in [directory, directory + "/names"] { chmod(path, 0o700) }
            try withPeer(["as", "65534", "hold", directory], at: fixture) { holder in
                try holder.take("name")
                try holder.write("list all\n")
                try holder.expect("names name")
                try holder.write("take secret\n")
                try holder.expect("error systemCallFailed")
            }
        }
    }

    @Test("a directory that is removed, and one that is put in its place, while names are registered, 100 times")
    func directoryGoes() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let warm = MachPort()
            try fixture.names.register(warm, name: "warm")
            warm.invalidate()
            for round in 0..<100 {
                let before = openDescriptors().count
                let port = MachPort()
                try fixture.names.register(port, name: "name")
                try FileManager.default.removeItem(atPath: fixture.directory)
                let other = MachPort()
                #expect(failure { try fixture.names.register(other, name: "other") }?.systemError?.code == ENOENT)
                other.invalidate()
                // The port itself goes on.
                try port.makeSendRight().send(MachMessage(id: 3), within: .zero)
                port.invalidate()
                _ = try PortNameServer(directory: fixture.directory)
                let next = MachPort()
                try fixture.names.register(next, name: "name")
                #expect(try fixture.names.lookUp("name") == next.makeSendRight())
                next.invalidate()
                #expect(openDescriptors().count == before, "round \(round)")
            }
        }
    }

    @Test("random names of any bytes but NUL can be registered, are listed and freed; others are refused", .seeded)
    func randomNames() async throws {
        try await withFixture { fixture in
            var generator = Seed.generator()
            let port = MachPort()
            for round in 0..<500 {
                var bytes: [UInt8] = []
                let length = Int.random(in: 1...140, using: &generator)
                while bytes.count < length {
                    let wide = UInt32.random(in: 0...(round % 3 == 0 ? 0x10FFFF : 0xFF), using: &generator)
                    if let scalar = Unicode.Scalar(wide) { bytes += Array(String(scalar).utf8) }
                }
                let name = String(decoding: bytes, as: UTF8.self)
                let error = failure { try fixture.names.register(port, name: name) }
                if bytes.contains(0) || bytes.count > 128 {
                    #expect(error?.code == (bytes.count > 128 ? .nameTooLong : .nameHasNUL))
                    continue
                }
                #expect(error == nil, "\(name.debugDescription)")
                #expect(try fixture.names.lookUp(name) == port.makeSendRight())
                let listed = try fixture.names.list().map { Array($0.name.utf8) }
                #expect(listed == [bytes])
                #expect(fixture.names.unregister(name))
                #expect(try sysList(fixture.directory + "/names") == [])
            }
            port.invalidate()
        }
    }

    @Test("a registration has its owner and since when, and the owner's start, as in the kernel")
    func registration() async throws {
        try await withFixture { fixture in
            let before = MonotonicInstant.now
            try withServer("name", at: fixture) { server in
                let registration = try #require(try fixture.names.list().first)
                #expect(registration.owner == server.processID)
                #expect(registration.since.advanced(by: .seconds(1)) > before)
                #expect(registration.since <= .now)
                #expect(registration.ownerStart == sysProcessStart(server.processID))
                #expect(registration.ownerStart != nil)
                let again = try fixture.names.list()
                #expect(again == [registration])
            }
        }
    }
}

/// A file system of a few pages, or a small existing one.
private struct FullDisk {
    let path: String
    private let isMounted: Bool

    /// Larger ones are not filled.
    private static let limit: UInt64 = 256 << 20
    private static let shared = "/dev/shm"

    /// Why there is none; nil when there is one.
    static let reason: String? = {
        let path = FileManager.default.temporaryDirectory.path + "/port-test-mount-\(getpid())"
        do {
            let disk = try any(at: path)
            disk.remove()
            rmdir(path)
            return nil
        } catch {
            return "no tmpfs can be mounted, and \(shared) is no tmpfs of at most \(limit >> 20) MiB"
        }
    }()

    /// One that is mounted at a path, or a directory on an existing one.
    static func any(at path: String) throws -> FullDisk {
        do {
            return try FullDisk(mountedAt: path)
        } catch {
            guard let disk = FullDisk(in: shared) else { throw error }
            return disk
        }
    }

    private init(mountedAt path: String) throws {
        self.path = path
        isMounted = true
        guard mkdir(path, 0o700) == 0, mount("none", path, "tmpfs", 0, "size=65536,mode=700") == 0 else {
            let code = errno
            rmdir(path)
            throw SystemError(code)
        }
    }

    private init?(in directory: String) {
        var status = statvfs()
        let mounts = (try? String(contentsOfFile: "/proc/mounts", encoding: .utf8)) ?? ""
        guard mounts.split(separator: "\n").contains(where: { $0.hasPrefix("tmpfs \(directory) ") }),
            statvfs(directory, &status) == 0, UInt64(status.f_blocks) * UInt64(status.f_frsize) <= Self.limit
        else { return nil }
        path = directory + "/port-test-\(getpid())"
        isMounted = false
        if mkdir(path, 0o700) != 0 { return nil }
    }

    /// Fills all pages.
    func fill(_ path: String) {
        let file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)
        let page = [UInt8](repeating: 1, count: 4096)
        while write(file, page, page.count) > 0 {}
        close(file)
    }

    func remove() {
        if isMounted {
            umount2(path, CInt(MNT_DETACH))
        } else {
            try? FileManager.default.removeItem(atPath: path)
        }
    }
}
