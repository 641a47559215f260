// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import Glibc
@testable import MessagePort
@testable import NamedPortServer
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

/// What another process of the same user can put into the directory of names.
@Suite("A hostile directory of names", .leakCheck(warmingUp: makeSpareDescriptor))
struct HostileDirectoryTests {
    private let own = sysProcessID()

    // MARK: Letters that look alike

    /// The sign for kelvin is, as text, equal to the letter K.
    private static let kelvin = "\u{212A}"

    @Test("F-A3: paths that are equal as text and not as bytes are addresses of two ports")
    func addresses() {
        let pairs = [("/caf\u{E9}/s", "/cafe\u{301}/s"), ("/K", "/" + Self.kelvin), ("/;", "/\u{37E}")]
        for (left, right) in pairs {
            let (left, right) = (PortAddress(path: left), PortAddress(path: right))
            #expect(left != right)
            #expect(Set([left, right, left]).count == 2)
        }
    }

    @Test("F-A3: a received right to a path that is only equal as text does not hijack a name's look-up")
    func lookUpAfterRight() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let directory = fixture.scratch.path("cafe\u{301}")
            let names = try PortNameServer(directory: directory)
            let port = MachPort()
            try names.register(port, name: "name")
            let path = try #require(port.localPort.state.withLock { $0.liveAddress }).path
            let other = "\(fixture.scratch.path)/caf\u{E9}" + path.utf8.dropFirst(directory.utf8.count).text
            let received = RightsTable.shared.right(receivedAt: PortAddress(path: other))
            #expect(received != port.makeSendRight())
            #expect(try names.lookUp("name") == port.makeSendRight())
            port.invalidate()
        }
    }

    @Test("F-A3: a file whose name is only equal as text hides no name, in a list and a watch")
    func listBesideKelvin() async throws {
        try await withFixture(leaving: .anything) { [own] fixture in
            let monitor = try NameMonitor(fixture.directory)
            #expect(try monitor.nextText() == nil)
            let file = try fixture.scratch.write("x", to: "swift-ports/names/\(Self.kelvin)")
            let port = MachPort()
            try fixture.names.register(port, name: "K")
            #expect(try fixture.names.list().map(\.name) == ["K"])
            #expect(try monitor.nextText() == "+K \(own)")
            try Data("y".utf8).write(to: URL(fileURLWithPath: file))
            #expect(try monitor.nextText() == nil)
            #expect(try PortNameServer(directory: fixture.directory).list().map(\.name) == ["K"])
            port.invalidate()
        }
    }

    @Test("F-A3: ports that differ only in the bytes of their path are two to a watch")
    func entries() {
        let registration = PortNameServer.Registration(
            name: "a", owner: 1, since: MonotonicInstant(nanoseconds: 0), ownerStart: nil)
        let entry = NameEntry(registration: registration, socketPath: "/K")
        #expect(!entry.isSame(as: NameEntry(registration: registration, socketPath: "/" + Self.kelvin)))
    }

    // MARK: Floods

    /// Makes a change before each of a number of reads.
    private func flood(_ fixture: NameFixture, times: Int) throws -> SystemCallFaults.Rule {
        let path = try fixture.file("flood")
        return .init(
            .read,
            .precede {
                close(open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0o600))
                unlink(path)
            }, times: times)
    }

    @Test("F-A4: changes that come as fast as they are read end a scan, and the next one goes on")
    func floodOfChanges() async throws {
        try await withFixture(leaving: .anything) { fixture in
            var watch = try NameDirectoryWatch.begin(at: fixture.directory)
            let rules = [try flood(fixture, times: 5000)]
            let calls = try SystemCallFaults.counting(with: rules) {
                let changes = try watch.changes()
                #expect(changes == .everything)
            }.calls
            #expect(calls[.read, default: 0] <= 64)
            try fixture.scratch.write("x", to: "swift-ports/names/last")
            #expect(try watch.changes() == .files(["last"]))
            #expect(try watch.changes() == .files([]))
        }
    }

    @Test("F-A4: a wait for a name keeps its limit while changes come without end")
    func floodOfWait() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let rules = [try flood(fixture, times: 100_000)]
            let (error, hits) = SystemCallFaults.with(rules) {
                failure { _ = try fixture.names.waitFor("name", within: .milliseconds(10)) }
            }
            #expect(error?.code == .nameWaitTimedOut)
            #expect(hits < 100_000)
        }
    }

    // MARK: Files that cannot be read

    /// Other processes cannot open the file, nor write it, until the lease is broken.
    private func lease(_ path: String) throws -> FileDescriptor {
        let file = FileDescriptor(owning: open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600))
        // The signal that reports an open of the file ends no process.
        guard fcntl(file.raw, 10 /* F_SETSIG */, SIGURG) == 0, fcntl(file.raw, 1024 /* F_SETLEASE */, F_WRLCK) == 0
        else { throw SystemError(errno) }
        return file
    }

    @Test("F-A5: a file under a lease holds no name: others are listed, watched, and waited for; its own is unknown")
    func leased() async throws {
        try await withFixture(leaving: .anything) { [own] fixture in
            let port = MachPort()
            try fixture.names.register(port, name: "name")
            let file = try lease(fixture.file("leased"))
            #expect(failure { close(try sysOpen(fixture.file("leased"), .reading).release()) } == nil)
            #expect(try fixture.names.list().map(\.name) == ["name"])
            #expect(try fixture.names.listStatistics(within: longTimeout).map(\.registration.name) == ["name"])
            let monitor = try NameMonitor(fixture.directory)
            #expect(try monitor.nextText() == "+name \(own)")
            #expect(try monitor.nextText() == nil)
            #expect(failure { _ = try fixture.names.lookUp("leased") }?.code == .nameUnknown)
            do throws(PortError) {
                _ = try fixture.names.waitFor("leased", within: .milliseconds(1))
                Issue.record("a process has the name")
            } catch {
                #expect(error.code == .nameWaitTimedOut)
            }
            port.invalidate()
            #expect(try monitor.nextText() == "-name \(own)")
            withExtendedLifetime(file) {}
        }
    }

    @Test(
        "F-A5: whatever error the kernel gives for one file, the others are names",
        arguments: [EWOULDBLOCK, EIO, ENXIO, ESTALE, EINVAL], [SystemCall.open, .fcntl, .read])
    func refused(number: CInt, call: SystemCall) async throws {
        try await withFixture { fixture in
            let port = MachPort()
            for name in ["one", "two", "three"] { try fixture.names.register(port, name: name) }
            // The first open is of the directory.
            let rule = SystemCallFaults.Rule(call, .fail(number), skipping: call == .open ? 1 : 0)
            let (listed, hits) = try SystemCallFaults.with([rule]) { try fixture.names.list().count }
            #expect(listed == 2)
            #expect(hits == 1)
            port.invalidate()
        }
    }

    // MARK: Paths that a record states

    @Test("F-A7: only sockets in the directory are asked for statistics, whatever a record or a link says")
    func elsewhere() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let path = fixture.scratch.path("elsewhere")
            let listener = try sysPacketSocket()
            try sysBind(listener.raw, path: path)
            try sysListen(listener.raw, backlog: 8)
            let names = try TrustedDirectory.open(path: fixture.directory + "/names")
            let port = MachPort()
            try fixture.names.register(port, name: "name")
            let link = "\(fixture.directory)/sockets/\(String(repeating: "a", count: 32)).1"
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
            let far = try ClaimedName("far", owner: 1, at: path, in: names)
            let linked = try ClaimedName("linked", owner: 1, at: link, in: names)
            let listed = try fixture.names.listAnswers(within: .milliseconds(1))
            #expect(listed.map(\.registration.name) == ["far", "linked", "name"])
            #expect(listed.map(\.answer) == [.silent, .silent, .answered(port.statistics)])
            #expect(try sysPoll(listener.raw, .readable, until: .distantPast).isEmpty, "a process has connected")
            withExtendedLifetime((far, linked)) {}
            port.invalidate()
        }
    }

    @Test("F-A7: a sweep follows no link in place of a socket")
    func sweptLink() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let path = fixture.scratch.path("elsewhere")
            let listener = try sysPacketSocket()
            try sysBind(listener.raw, path: path)
            try sysListen(listener.raw, backlog: 8)
            let link = "\(fixture.directory)/sockets/\(String(repeating: "a", count: 32)).1"
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
            let endpoints = try ProcessEndpoints(in: TrustedDirectory.open(path: fixture.directory + "/sockets"))
            #expect(try sysPoll(listener.raw, .readable, until: .distantPast).isEmpty, "the sweep has connected")
            #expect(try sysStatus(atPath: link) == nil)
            withExtendedLifetime(endpoints) {}
        }
    }

    // MARK: Sockets that are replaced

    @Test("F-B8: a port whose socket was replaced gets another one when it is named again")
    func replacedSocket() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let port = MachPort()
            try fixture.names.register(port, name: "name")
            let path = try fixture.socket("name")
            #expect(unlink(path) == 0)
            let other = try sysPacketSocket()
            try sysBind(other.raw, path: path)
            try sysListen(other.raw, backlog: 8)
            try fixture.names.register(port, name: "again")
            #expect(try fixture.socket("again") != path)
            let right = SendRight(try #require(try RightsTable.connect(to: PortAddress(path: fixture.socket("again")))))
            try right.send(MachMessage(id: 7), within: longTimeout)
            #expect(try port.receive(within: longTimeout)?.id == 7)
            port.invalidate()
        }
    }

    // MARK: Sockets that are declared

    @Test(
        "F-A15: declared sockets behind a link, or in a directory that is open to others, are not used",
        arguments: [true, false])
    func declared(isLink: Bool) async throws {
        try await withFixture(leaving: .anything) { fixture in
            let directory = fixture.scratch.path("open")
            mkdir(directory, 0o777)
            chmod(directory, 0o777)
            let declared = fixture.directory + "/declared"
            if isLink {
                chmod(directory, 0o700)
                try FileManager.default.createSymbolicLink(atPath: declared, withDestinationPath: directory)
            } else {
                #expect(rename(directory, declared) == 0)
            }
            // A dead socket.
            let dead = try sysPacketSocket()
            try sysBind(dead.raw, path: declared + "/name")
            let made = try sysStatus(atPath: declared + "/name")
            #expect(failure { _ = try DeclaredName("name", in: fixture.names) }?.code == .directoryUntrusted)
            #expect(failure { _ = try fixture.names.lookUp("name") }?.code == .directoryUntrusted)
            #expect(failure { _ = try fixture.names.waitFor("name", within: longTimeout) }?.code == .directoryUntrusted)
            #expect(failure { try fixture.names.checkIn(MachPort(), name: "name") }?.code == .directoryUntrusted)
            #expect(try sysStatus(atPath: declared + "/name") == made)
        }
    }

    @Test("F-A15: a link in place of a declared socket holds no name, and stays")
    func declaredLink() async throws {
        try await withFixture(leaving: .anything) { fixture in
            mkdir(fixture.directory + "/declared", 0o700)
            let path = fixture.scratch.path("elsewhere")
            let listener = try sysPacketSocket()
            try sysBind(listener.raw, path: path)
            try sysListen(listener.raw, backlog: 8)
            let link = fixture.directory + "/declared/name"
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
            #expect(failure { _ = try fixture.names.lookUp("name") }?.code == .nameUnknown)
            #expect(failure { _ = try DeclaredName("name", in: fixture.names) }?.systemError?.code == EADDRINUSE)
            #expect(try sysReadLink(link) == path)
            #expect(try sysPoll(listener.raw, .readable, until: .distantPast).isEmpty)
        }
    }

    // MARK: Rubbish

    /// Directories cannot be removed like files.
    private func fill(_ directory: String, with count: Int, _ name: (Int) -> String) {
        for number in 0..<count { mkdir("\(directory)/\(name(number))", 0o700) }
    }

    @Test("F-B9: a sweep checks a limited number of files, however few it can remove")
    func sweeps() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let count = 10_100
            fill(fixture.directory + "/sockets", with: count) { number in
                String(repeating: "0", count: 27) + String(number + 10_000) + ".1"
            }
            let sockets = try TrustedDirectory.open(path: fixture.directory + "/sockets")
            let (endpoints, calls) = try SystemCallFaults.counting { try ProcessEndpoints(in: sockets) }
            // Each counts twice: the dead process, which costs opening its lock, and its file.
            #expect(calls[.open, default: 0] <= 2 * 10_000 && calls[.connect, default: 0] == 0)
            #expect(calls[.unlink, default: 0] <= 10_000)
            fill(fixture.directory + "/names", with: count) { "n\($0)" }
            let directory = try PortDirectory.open(path: fixture.directory)
            let sweepCalls = SystemCallFaults.counting { #expect(directory.sweepNames() == 0) }.calls
            #expect(sweepCalls[.open, default: 0] <= 10_001)
            withExtendedLifetime(endpoints) {}
        }
    }

    @Test("a file that a process moved aside before it ended is swept, and one that is still locked stays")
    func asideFiles() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let directory = try PortDirectory.open(path: fixture.directory)
            let (left, held) = (LockedFile.asideName(), LockedFile.asideName())
            // What comes after the prefix may be anything, also an accent.
            for file in [left, LockedFile.asidePrefix + "\u{301}"] {
                close(creat("\(fixture.directory)/names/\(file)", 0o600))
            }
            guard case .locked(let lock) = try LockedFile.acquire(held, in: directory.names) else {
                Issue.record("\(held) is locked by another process")
                return
            }
            #expect(directory.sweepNames() == 2)
            #expect(try sysList(in: directory.names.raw) == [held])
            lock.remove()
        }
    }

    @Test("F-A13: a name that would act on a terminal does nothing there when its registration or event is printed")
    func printedNames() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let (names, port) = (try PortNameServer(directory: fixture.directory), MachPort())
            try names.register(port, name: "a\u{1B}[2J\u{9B}\u{202E}b")
            let registration = try #require(try names.list().first)
            for text in ["\(registration)", "\(NameEvent.appeared(registration))"] {
                #expect(text.contains("a\\u{"), "\(text.debugDescription)")
                let acting: Set<UInt32> = [0x1B, 0x9B, 0x202E]
                #expect(!text.unicodeScalars.contains { acting.contains($0.value) })
            }
            port.invalidate()
        }
    }

    // MARK: Owners that a record states

    @Test("F-A6: a watch opens a descriptor for at most 64 owners, and sees all names come and go")
    func manyOwners() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let count = 70
            let pipe = Pipe()
            let owners = try (0..<count).map { _ in
                try sysSpawn(
                    "/bin/cat", arguments: [], environment: [:], in: nil,
                    descriptors: [pipe.fileHandleForReading.fileDescriptor, nil, nil])
            }
            let names = try TrustedDirectory.open(path: fixture.directory + "/names")
            var held: [Int32: ClaimedName] = [:]
            for owner in owners { held[owner] = try ClaimedName("n\(owner)", owner: owner, in: names) }
            let monitor = try NameMonitor(fixture.directory)
            let before = openDescriptors()
            var answered = Set<String>()
            while let text = try monitor.nextText() { answered.insert(text) }
            #expect(answered == Set(owners.map { "+n\($0) \($0)" }))
            try #require(openDescriptors().count - before.count <= 64)
            // All names are gone, and nothing in the directory reports it.
            for name in held.values { try name.unlock() }
            var gone = Set<String>()
            while gone.count < count {
                _ = try sysPoll(monitor.raw, .readable, until: monitor.nextCheck)
                while let text = try monitor.nextText() {
                    gone.insert(text)
                    if gone.count == count - 64 { try pipe.fileHandleForWriting.close() }
                }
            }
            #expect(gone == Set(owners.map { "-n\($0) \($0)" }))
            try pipe.fileHandleForReading.close()
            for owner in owners { waitpid(owner, nil, 0) }
        }
    }
}

/// A name that this process holds, with a record that states another owner.
final class ClaimedName {
    private let file: FileDescriptor

    init(_ name: String, owner: Int32, at path: String = "/nobody/is/there", in names: TrustedDirectory) throws {
        file = try sysOpen(try PortName(name).fileName, in: names.raw, .creating)
        try #require(try sysLock(file.raw, .openFile))
        let record = try #require(NameRecord(owner: owner, since: 1, socketPath: path))
        try sysWriteAll(file.raw, record.contents)
    }

    /// Frees the name without a change that the directory reports.
    func unlock() throws { try sysUnlock(file.raw, .openFile) }
}

extension Substring.UTF8View {
    fileprivate var text: String { String(decoding: self, as: UTF8.self) }
}
