// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite("Listener and connect", .leakCheck) struct AddressesListenerTests {
    let scratch: AddressScratch
    let directory: TrustedDirectory
    let endpoints: ProcessEndpoints

    init() throws {
        scratch = try AddressScratch()
        directory = try TrustedDirectory.open(path: scratch.path)
        endpoints = try ProcessEndpoints(in: directory)
    }

    @Test("a client that connects to a listener's path is accepted, and packets pass")
    func connected() throws {
        let listener = try endpoints.makeListener(backlog: 4)
        #expect(listener.path == scratch.path(listener.name))
        let client = try #require(try connection(listener.path))
        let server = try accepted(listener)
        try expectPackets(client, server)
    }

    @Test("each listener has its own name, and no unfinished name stays")
    func names() throws {
        let one = try endpoints.makeListener(backlog: 1)
        let two = try endpoints.makeListener(backlog: 1)
        #expect(one.name != two.name)
        #expect(try sysList(scratch.path).sorted() == [one.name, two.name, endpoints.id + ".lock", "locks"].sorted())
    }

    @Test("a listener that ends removes its path, and connecting finds no listener")
    func closed() throws {
        let listener = try endpoints.makeListener(backlog: 1)
        let path = listener.path
        listener.close()
        #expect(try sysStatus(path, in: AT_FDCWD) == nil)
        #expect(try isDead(path))
    }

    @Test("a path too long for a socket address works through the directory", arguments: [107, 108, 300, 3000])
    func longPath(length: Int) throws {
        var root = scratch.path
        let nameLength = endpoints.id.utf8.count + 3
        while root.utf8.count + nameLength < length {
            root += "/" + String(repeating: "d", count: max(1, min(200, length - nameLength - root.utf8.count - 1)))
            _ = try sysMakeDirectory(root)
        }
        let far = try ProcessEndpoints(in: TrustedDirectory.open(path: root))
        let listener = try far.makeListener(backlog: 1)
        #expect(listener.path.utf8.count >= length)
        let client = try #require(try connection(listener.path))
        let server = try accepted(listener)
        try expectPackets(client, server)
        let path = listener.path
        listener.close()
        #expect(try isDead(path))
        #expect(try isDead(root + "/none/" + far.makeSocketName()))
    }

    @Test("a full backlog is busy, and free again when a connection was accepted")
    func busy() throws {
        let listener = try endpoints.makeListener(backlog: 0)
        var waiting: [SharedDescriptor] = []
        while let client = try connection(listener.path), waiting.count < 10 { waiting.append(client) }
        #expect((1..<10).contains(waiting.count))
        guard case .busy = try ProcessEndpoints.connect(toPath: listener.path) else {
            Issue.record("not busy")
            return
        }
        _ = try accepted(listener)
        #expect(try connection(listener.path) != nil)
    }

    @Test("no listener is at a path that does not exist, or where a directory is a file, or a socket or file is dead")
    func dead() throws {
        try scratch.makeFile("file")
        do {
            let socket = try sysPacketSocket()
            try sysBind(socket.raw, path: scratch.path("bound"))
            #expect(try isDead(scratch.path("bound")), "not listening yet")
        }
        for name in ["none", "none/none", "file", "file/none", "bound"] {
            #expect(try isDead(scratch.path(name)), "\(name)")
        }
    }

    @Test(
        "a path that no packet socket has is malformed", arguments: ["", "relative", "/", "/a/", "/a\0b", "\0abstract"])
    func malformed(path: String) {
        let error = portError { () throws(PortError) in _ = try ProcessEndpoints.connect(toPath: path) }
        #expect(error == PortError(.malformedPacket, subject: .path(path)))
    }

    @Test("a last name that no socket address holds, and a socket of another type, are malformed")
    func otherSockets() throws {
        let long = scratch.path(String(repeating: "x", count: 120))
        #expect(
            connectError(long) == PortError(.malformedPacket, system: SystemError(ENAMETOOLONG), subject: .path(long)))
        let path = scratch.path("stream")
        let stream = FileDescriptor(owning: socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0))
        try sysBind(stream.raw, path: path)
        try sysListen(stream.raw, backlog: 1)
        #expect(
            connectError(path) == PortError(.malformedPacket, system: SystemError(EPROTOTYPE), subject: .path(path)))
    }

    @Test("a listener of another user is refused", .enabled(if: isRoot, "only root can become another user"))
    func peerRefused() async throws {
        let root = scratch.path
        #expect(chmod(root, 0o777) == 0)
        await #expect(processExitsWith: .success) { [root = root as String] in
            let path = root + "/other"
            #expect(seteuid(otherUser) == 0)
            let socket = try sysPacketSocket()
            try sysBind(socket.raw, path: path)
            try sysListen(socket.raw, backlog: 4)
            #expect(seteuid(0) == 0)
            let error = portError { () throws(PortError) in _ = try ProcessEndpoints.connect(toPath: path) }
            #expect(error == PortError(.peerRefused, subject: .path(path)))

            // A socket that this user may not even connect to.
            let own = root + "/own"
            let ownSocket = try sysPacketSocket()
            try sysBind(ownSocket.raw, path: own)
            try sysListen(ownSocket.raw, backlog: 4)
            #expect(chmod(own, 0o700) == 0)
            #expect(seteuid(otherUser) == 0)
            let denied = portError { () throws(PortError) in _ = try ProcessEndpoints.connect(toPath: own) }
            #expect(denied == PortError(.peerRefused, system: SystemError(EACCES), subject: .path(own)))
            #expect(seteuid(0) == 0)
        }
    }

    @Test("a socket that can be seen never refuses")
    func visible() throws {
        let (made, refused) = (Gate(), Gate())
        let endpoints = endpoints
        try onThreads(2) { [directory] thread in
            if thread == 0 {
                for _ in 0..<300 {
                    // Unlinked before it stops listening: seen dead only when it is not there any more.
                    guard let listener = try? endpoints.makeListener(backlog: 64) else { continue }
                    sched_yield()
                    listener.close()
                }
                made.open()
            } else {
                while !made.isOpen {
                    for name in (try? sysList(directory.path)) ?? [] where EndpointFileName(name)?.isLock == false {
                        guard !name.hasSuffix(".new") else { continue }
                        guard case .dead? = try? ProcessEndpoints.connect(toPath: endpoints.path(of: name)) else {
                            continue
                        }
                        if (try? sysStatus(name, in: directory.raw)) != .some(nil) { refused.open() }
                    }
                }
            }
        }
        #expect(!refused.isOpen)
    }

    #if PORT_FAULTS
    @Test("a listener that cannot be made leaves no file and no descriptor, and the error names the limit")
    func faults() async throws {
        let root = scratch.path
        await #expect(processExitsWith: .success) { [root = root as String] in
            await Pools.start()
            let endpoints = try ProcessEndpoints(in: TrustedDirectory.open(path: root))
            try expectNoNewDescriptors {
                let stillListening = try endpoints.makeListener(backlog: 64)
                let files = try sysList(root).sorted()
                let faults: [(SystemCall, CInt, PortError.Code)] = [
                    (.socket, EMFILE, .descriptorLimit), (.socket, ENFILE, .descriptorLimit),
                    (.bind, ENOSPC, .systemCallFailed),
                    (.listen, EADDRINUSE, .systemCallFailed), (.rename, EEXIST, .systemCallFailed),
                ]
                for (call, code, expected) in faults {
                    let (error, hits) = SystemCallFaults.with([.init(call, .fail(code))]) {
                        portError { () throws(PortError) in _ = try endpoints.makeListener(backlog: 1) }
                    }
                    #expect(hits == 1 && error?.code == expected && error?.systemError == SystemError(code))
                    #expect(try sysList(root).sorted() == files)
                }
                let connecting: [(SystemCall, CInt, PortError.Code)] = [
                    (.socket, EMFILE, .descriptorLimit), (.connect, ENOMEM, .systemCallFailed),
                    (.getsockopt, ENOBUFS, .systemCallFailed),
                ]
                for (call, code, expected) in connecting {
                    let (error, hits) = SystemCallFaults.with([.init(call, .fail(code))]) {
                        portError { () throws(PortError) in
                            _ = try ProcessEndpoints.connect(toPath: stillListening.path)
                        }
                    }
                    #expect(hits == 1)
                    #expect(
                        error == PortError(expected, system: SystemError(code), subject: .path(stillListening.path)))
                }
            }
            withExtendedLifetime(endpoints) {}
        }
    }
    #endif

    @Test("a listener cannot be made in a directory that was removed")
    func removedDirectory() throws {
        let root = scratch.path("gone")
        let endpoints = try ProcessEndpoints(in: TrustedDirectory.open(path: root))
        for name in [endpoints.id + ".lock", "locks"] { #expect(unlink(root + "/" + name) == 0) }
        #expect(rmdir(root) == 0)
        let error = portError { () throws(PortError) in _ = try endpoints.makeListener(backlog: 1) }
        #expect(error?.systemError == SystemError(ENOENT))
    }
}

extension AddressesListenerTests {
    private func connection(_ path: String) throws(PortError) -> SharedDescriptor? {
        guard case .connected(let descriptor, _) = try ProcessEndpoints.connect(toPath: path) else { return nil }
        return descriptor
    }

    private func accepted(_ listener: borrowing Listener) throws -> SharedDescriptor {
        var connection: SharedDescriptor?
        if let descriptor = try sysAccept(listener.descriptor.raw) { connection = SharedDescriptor(descriptor) }
        return try #require(connection)
    }

    private func isDead(_ path: String) throws(PortError) -> Bool {
        guard case .dead = try ProcessEndpoints.connect(toPath: path) else { return false }
        return true
    }

    private func connectError(_ path: String) -> PortError? {
        portError { () throws(PortError) in _ = try ProcessEndpoints.connect(toPath: path) }
    }

    private func expectPackets(_ one: SharedDescriptor, _ other: SharedDescriptor) throws {
        #expect(try sysWrite(one.rawValue, [1, 2, 3]) == 3)
        #expect(try sysRead(other.rawValue, capacity: 10) == [1, 2, 3])
        #expect(try sysWrite(other.rawValue, [4]) == 1)
        #expect(try sysRead(one.rawValue, capacity: 10) == [4])
    }
}
