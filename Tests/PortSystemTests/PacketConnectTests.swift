// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import TestSupport
import Testing

@Suite("PacketSocket, listening and connecting", .leakCheck) struct PacketConnectTests {
    private func connection(_ path: String) throws -> SharedDescriptor? {
        let socket = try sysPacketSocket()
        return try sysConnect(socket.raw, path: path) ? SharedDescriptor(socket) : nil
    }

    @Test("a connection carries packets both ways, and is close-on-exec and non-blocking at both ends")
    func connect() throws {
        try withScratchDirectory(leaving: .anything) { scratch in
            let listener = try packetListener(at: scratch.path("socket"))
            #expect(isCloseOnExec(listener.rawValue))
            #expect(try sysAccept(listener.rawValue) == nil ? true : false)
            let near = try #require(try connection(scratch.path("socket")))
            let far = try pendingConnection(at: listener)
            for end in [near, far] {
                #expect(isCloseOnExec(end.rawValue))
                #expect(isNonBlocking(end.rawValue))
            }
            #expect(try send(near, [1]) == .sent)
            #expect(try send(far, [2]) == .sent)
            #expect(try receive(far) == .packet([1], descriptorCount: 0))
            #expect(try receive(near) == .packet([2], descriptorCount: 0))
        }
    }

    @Test("each end knows the process, user and group of the other")
    func credentials() throws {
        try withScratchDirectory(leaving: .anything) { scratch in
            let listener = try packetListener(at: scratch.path("socket"))
            let near = try #require(try connection(scratch.path("socket")))
            let far = try pendingConnection(at: listener)
            for end in [near, far] {
                let peer = try sysPeerCredentials(end.rawValue)
                #expect(peer.process == getpid())
                #expect(peer.user == geteuid())
                #expect(peer.group == getegid())
            }
        }
    }

    @Test("a path without a listener refuses, a path without a socket does not exist")
    func refusals() throws {
        try withScratchDirectory(leaving: .anything) { scratch in
            _ = try packetListener(at: scratch.path("dead"))
            #expect(throws: SystemError(ECONNREFUSED)) { try connection(scratch.path("dead")) }
            #expect(throws: SystemError(ENOENT)) { try connection(scratch.path("missing")) }
            let file = try scratch.write("", to: "file")
            #expect(throws: SystemError(ECONNREFUSED)) { try connection(file) }
        }
    }

    @Test("a listener of another socket type is refused")
    func otherType() throws {
        try withScratchDirectory(leaving: .anything) { scratch in
            let stream = SharedDescriptor(owning: socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0))
            try sysBind(stream.rawValue, path: scratch.path("stream"))
            try sysListen(stream.rawValue, backlog: 1)
            #expect(throws: SystemError(EPROTOTYPE)) { try connection(scratch.path("stream")) }
        }
    }

    @Test("a path is bound once")
    func taken() throws {
        try withScratchDirectory(leaving: .anything) { scratch in
            let first = try packetListener(at: scratch.path("socket"))
            #expect(throws: SystemError(EADDRINUSE)) { _ = try packetListener(at: scratch.path("socket")) }
            #expect(first.rawValue >= 0)
        }
    }

    @Test("a full backlog is no error: the connection is made when there is room again")
    func fullBacklog() throws {
        try withScratchDirectory(leaving: .anything) { scratch in
            let path = scratch.path("socket")
            let listener = try packetListener(at: path, backlog: 1)
            var connections: [SharedDescriptor] = []
            while connections.count < 100, let next = try connection(path) { connections.append(next) }
            #expect(connections.count < 100 && !connections.isEmpty)
            let waiting = try sysPacketSocket()
            #expect(try !sysConnect(waiting.raw, path: path))
            _ = try pendingConnection(at: listener)
            #expect(try sysConnect(waiting.raw, path: path))
        }
    }

    @Test("signals that come more often than the limit do not keep a wait for a full backlog from its end")
    func interrupted() throws {
        try withScratchDirectory(leaving: .anything) { scratch in
            let path = scratch.path("socket")
            let listener = try packetListener(at: path, backlog: 0)
            var connections: [SharedDescriptor] = []
            while connections.count < 100, let next = try connection(path) { connections.append(next) }
            var (handler, old) = (sigaction(), sigaction())
            handler.__sigaction_handler.sa_handler = { _ in }  // without SA_RESTART
            sigaction(SIGURG, &handler, &old)
            defer { sigaction(SIGURG, &old, nil) }
            let (threads, ends) = (Recorder<pthread_t>(), Counter("waits"))
            let connecting = runOnThread {
                threads.append(pthread_self())
                defer { ends.increment() }
                let socket = SharedDescriptor(try sysPacketSocket())
                return try sysConnect(socket.rawValue, path: path, until: .after(.milliseconds(100)))
            }
            let deadline = Watchdog.deadline
            while ends.value == 0, .now < deadline {
                if let thread = threads.elements.first { pthread_kill(thread, SIGURG) }
                poll(nil, 0, 1)
            }
            #expect(try !connecting.join())
            withExtendedLifetime((listener, connections)) {}
        }
    }

    @Test("a path of 107 bytes is bound, one of 108 is too long to bind or to connect to")
    func longPath() throws {
        try withScratchDirectory(leaving: .anything) { scratch in
            let fitting = scratch.path(String(repeating: "x", count: 106 - scratch.path.utf8.count))
            #expect(fitting.utf8.count == 107)
            let listener = try packetListener(at: fitting)
            #expect(try connection(fitting) != nil)
            #expect(throws: SystemError(ENAMETOOLONG)) { _ = try packetListener(at: fitting + "x") }
            #expect(throws: SystemError(ENAMETOOLONG)) { try connection(fitting + "x") }
            #expect(try pendingConnection(at: listener).rawValue >= 0)
        }
    }

    #if PORT_FAULTS
    @Test("a connection that was given up while it waited is skipped")
    func abortedConnection() throws {
        try withScratchDirectory(leaving: .anything) { scratch in
            let listener = try packetListener(at: scratch.path("socket"))
            let near = try #require(try connection(scratch.path("socket")))
            let (far, hits) = try SystemCallFaults.with([.init(.accept, .fail(ECONNABORTED), times: 3)]) {
                try pendingConnection(at: listener)
            }
            #expect(hits == 3)
            #expect(try send(near, [1]) == .sent)
            #expect(try receive(far) == .packet([1], descriptorCount: 0))
        }
    }
    #endif

    @Test("a connection for which no descriptor is left goes on waiting")
    func acceptWithoutDescriptors() async {
        await #expect(processExitsWith: .success) {
            await Pools.start()
            try withScratchDirectory(leaving: .anything) { scratch in
                let socket = try sysPacketSocket()
                try sysBind(socket.raw, path: scratch.path("socket"))
                try sysListen(socket.raw, backlog: 1)
                let other = try sysPacketSocket()
                #expect(try sysConnect(other.raw, path: scratch.path("socket")))
                let listening = socket.raw
                #expect(throws: SystemError(EMFILE)) {
                    try withDescriptorRoom(0) { _ = try sysAccept(listening) }
                }
                let accepted = try sysAccept(listening)
                #expect(accepted == nil ? false : true)
                _ = consume accepted
            }
        }
    }
}
