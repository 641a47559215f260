// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Foundation
import Glibc
import NamedPortServer
import PortSystem
import TestSupport
import Testing

@Suite("Directories of names", .leakCheck(warmingUp: makeSpareDescriptor)) struct NameDirectoryTests {
    @Test("a directory that others may enter, a link, a file and a relative path are not trusted")
    func untrusted() async throws {
        try await withFixture { fixture in
            let directory = fixture.scratch.path("directory")
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
            func code(_ path: String) -> PortError.Code? {
                failure { _ = try PortNameServer(directory: path) }?.code
            }
            for mode: mode_t in [0o755, 0o770, 0o701, 0o777] {
                chmod(directory, mode)
                #expect(code(directory) == .directoryUntrusted, "mode \(String(mode, radix: 8))")
            }
            chmod(directory, 0o700)
            #expect(code(directory) == nil)
            let link = fixture.scratch.path("link")
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: directory)
            #expect(code(link) == .directoryUntrusted)
            #expect(code(link + "/") == .directoryUntrusted)
            #expect(code(try fixture.scratch.write("", to: "file")) == .directoryUntrusted)
            #expect(code("relative") == .directoryUntrusted)
            #expect(code(fixture.scratch.path("missing/directory")) == .systemCallFailed)
        }
    }

    @Test("a directory of another user is not trusted", .enabled(if: sysUserID() == 0, "needs root"))
    func anothers() async throws {
        try await withFixture { fixture in
            let directory = fixture.scratch.path("directory")
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            #expect(chown(directory, 65534, 65534) == 0)
            let error = failure { _ = try PortNameServer(directory: directory) }
            #expect(error?.code == .directoryUntrusted)
        }
    }

    @Test("a directory that is removed while in use is an error for names, and does not affect the ports")
    func removed() async throws {
        try await withFixture { fixture in
            let port = MachPort()
            try fixture.names.register(port, name: "name")
            try FileManager.default.removeItem(atPath: fixture.directory)
            expectNoDirectory(fixture.names)
            try port.makeSendRight().send(MachMessage(id: 3), within: .zero)
            #expect(try port.tryReceive()?.id == 3)
            port.invalidate()
            #expect(!fixture.names.unregister("name"))
        }
    }

    private func expectNoDirectory(_ names: PortNameServer) {
        #expect(failure { _ = try names.lookUp("name") }?.code == .nameUnknown)
        let registered = failure { try names.register(MachPort(), name: "other") }
        #expect(registered?.code == .systemCallFailed)
        #expect(registered?.systemError?.code == ENOENT)
        #expect(failure { _ = try names.list() }?.code == .systemCallFailed)
    }

    @Test("a port whose socket was removed, alone or with the directory, can be named again and found, 20 times")
    func socketRemoved() async throws {
        try await withFixture { fixture in
            let port = MachPort { _, message in try? message.reply(MachMessage(id: message.id + 1)) }
            try fixture.names.register(port, name: "name")
            var clients = [try fixture.remote("name", over: .socket)]
            try withLoopThread { loop in
                try port.schedule(on: loop)
                for round in 0..<20 {
                    if round % 2 == 0 {
                        unlink(try fixture.socket("name"))
                        #expect(fixture.names.unregister("name"))
                    } else {
                        try FileManager.default.removeItem(atPath: fixture.directory)
                        _ = try PortNameServer(directory: fixture.directory)
                    }
                    try fixture.names.register(port, name: "name")
                    #expect(try fixture.names.lookUp("name") == port.makeSendRight())
                    clients.append(try fixture.remote("name", over: .socket))
                    // Clients that were connected before are served as well.
                    for client in clients {
                        let reply = try client.request(
                            MachMessage(id: 1), sendLimit: longTimeout, replyLimit: longTimeout)
                        #expect(reply.id == 2)
                    }
                }
                try withServer("peer", at: fixture) { server in
                    let peer = try RemoteMessagePort(name: "peer", nameServer: fixture.names)
                    let ask = MachMessage(id: Act.process)
                    #expect(
                        try peer.request(ask, sendLimit: longTimeout, replyLimit: longTimeout).text
                            == "\(server.processID)")
                }
                port.invalidate()
            }
            for client in clients { #expect(!client.isValid) }
        }
    }

    @Test("a name file of foreign content is no name, and the name can be registered")
    func foreignContents() async throws {
        try await withFixture { fixture in
            let record = try #require(NameRecord(owner: 1, since: 2, socketPath: "/nowhere/at/all")).contents
            let contents = [
                [], Array("hello".utf8), record, record.dropLast(), Array(record.prefix(20)), record + record,
                [UInt8](repeating: 0xFF, count: 20_000), [UInt8](repeating: 0, count: 100),
            ]
            for bytes in contents {
                try Data(bytes).write(to: URL(fileURLWithPath: fixture.file("name")))
                #expect(chmod(try fixture.file("name"), 0o600) == 0)
                #expect(failure { _ = try fixture.names.lookUp("name") }?.code == .nameUnknown)
                #expect(try fixture.names.list() == [])
                let port = MachPort()
                try fixture.names.register(port, name: "name")
                #expect(try fixture.names.lookUp("name") == port.makeSendRight())
                port.invalidate()
            }
        }
    }

    @Test("a held name whose file is torn is taken, unknown and not listed")
    func tornWhileHeld() async throws {
        try await withFixture { fixture in
            let port = MachPort()
            try fixture.names.register(port, name: "name")
            let file = try fixture.file("name")
            let whole = try Data(contentsOf: URL(fileURLWithPath: file))
            for length in [0, 1, whole.count / 2, whole.count - 1] {
                #expect(truncate(file, length) == 0)
                #expect(failure { _ = try fixture.names.lookUp("name") }?.code == .nameUnknown)
                #expect(try fixture.names.list() == [])
                let error = failure { try fixture.names.register(MachPort(), name: "name") }
                #expect(error?.code == .nameTaken)
                #expect(error?.owner == nil)
                let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
                try handle.write(contentsOf: whole)
                try handle.close()
                #expect(try fixture.names.lookUp("name") == port.makeSendRight())
            }
            port.invalidate()
        }
    }

    @Test("an entry that is no regular file is not trusted as a name, and does not hide the others from the list")
    func foreignFiles() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let port = MachPort()
            try fixture.names.register(port, name: "name")
            let directory = try fixture.file("directory")
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
            try FileManager.default.createSymbolicLink(
                atPath: fixture.file("link"), withDestinationPath: fixture.file("name"))
            #expect(mkfifo(try fixture.file("pipe"), 0o600) == 0)
            for name in ["directory", "link", "pipe"] {
                let found = failure { _ = try fixture.names.lookUp(name) }
                #expect(found?.code == .directoryUntrusted, "\(name)")
                let taken = failure { try fixture.names.register(MachPort(), name: name) }
                #expect(taken?.code == .directoryUntrusted, "\(name)")
            }
            #expect(try fixture.names.list().map(\.name) == ["name"])
            port.invalidate()
        }
    }

    @Test("files whose names stand for no port name are left alone")
    func foreignNames() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let names = [".hidden", "%", "%zz", "%%", "a b", "\u{FF}", "%41"]
            for name in names { try fixture.scratch.write("x", to: "swift-ports/names/\(name)") }
            #expect(try fixture.names.list() == [])
            let port = MachPort()
            try fixture.names.register(port, name: "A")
            port.invalidate()
            #expect(Set(try sysList(fixture.scratch.path("swift-ports/names"))) == Set(names))
        }
    }
}
