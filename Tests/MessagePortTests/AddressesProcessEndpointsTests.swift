// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import Glibc
import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite("ProcessEndpoints", .leakCheck) struct AddressesProcessEndpointsTests {
    let scratch: AddressScratch
    let directory: TrustedDirectory

    init() throws {
        scratch = try AddressScratch()
        directory = try TrustedDirectory.open(path: scratch.path)
    }

    /// What is there besides the record of the kind of lock.
    private func files() throws -> [String] {
        try sysList(scratch.path).filter { $0 != TrustedDirectory.lockRecord }
    }

    @Test("socket names are the process's id and a number never used before")
    func names() throws {
        let endpoints = try ProcessEndpoints(in: directory)
        let names = (0..<100).map { _ in endpoints.makeSocketName() }
        #expect(Set(names).count == 100)
        for name in names { #expect(EndpointFileName(name)?.id == endpoints.id) }
        #expect(endpoints.path(of: names[0]) == scratch.path + "/" + names[0])
        #expect(try LockedFile.isLocked(EndpointFileName.lock(of: endpoints.id), in: directory))
    }

    @Test("a directory has one set of endpoints, made on first use, and its lock file ends with it")
    func perDirectory() throws {
        let sockets: String
        do {
            let ports = try PortDirectory.open(path: scratch.path("ports"))
            sockets = ports.sockets.path
            #expect(try sysList(sockets) == [])
            let (one, two) = (try ports.endpoints(), try ports.endpoints())
            #expect(one === two)
            #expect(try sysList(sockets) == [one.id + ".lock"])
        }
        #expect(try sysList(sockets) == [])
    }

    @Test("the sockets of a killed process are swept, those of the living and foreign files stay")
    func sweep() async throws {
        let living = try ProcessEndpoints(in: directory)
        let listener = try living.makeListener(backlog: 4)
        let root = scratch.path
        await #expect(processExitsWith: .signal(SIGKILL)) { [root = root as String] in
            let endpoints = try ProcessEndpoints(in: TrustedDirectory.open(path: root))
            let one = try endpoints.makeListener(backlog: 4)
            let two = try endpoints.makeListener(backlog: 4)
            let unfinished = try sysPacketSocket()
            try sysBind(unfinished.raw, path: endpoints.path(of: endpoints.makeSocketName() + ".new"))
            kill(sysProcessID(), SIGKILL)
            one.close()
            two.close()
        }
        let foreign = ["README", "x.lock", "x.1", living.id.uppercased() + ".1", living.id + ".1.old"]
        for name in foreign { try scratch.makeFile(name) }
        let alive = [listener.name, living.id + ".lock"]
        let dead = Set(try files()).subtracting(foreign + alive)
        #expect(dead.count == 4)
        for name in dead where !name.hasSuffix(".lock") {
            guard case .dead = try ProcessEndpoints.connect(toPath: scratch.path(name)) else {
                Issue.record("\(name) is not dead")
                continue
            }
        }

        let next = try ProcessEndpoints(in: directory)
        #expect(Set(try files()) == Set(foreign + alive + [next.id + ".lock"]))
        guard case .connected = try ProcessEndpoints.connect(toPath: listener.path) else {
            Issue.record("the living listener was swept")
            return
        }
    }

    @Test("sockets without a lock file are swept when they are dead, and stay while they live")
    func missingLock() throws {
        let living = try ProcessEndpoints(in: directory)
        let listener = try living.makeListener(backlog: 4)
        try sysUnlink(living.id + ".lock", in: directory.raw)
        let orphan = EndpointFileName.makeID() + ".5"
        do {
            let socket = try sysPacketSocket()
            try sysBind(socket.raw, path: scratch.path(orphan))
        }
        let sweeper = try ProcessEndpoints(in: directory)
        #expect(Set(try files()) == [listener.name, sweeper.id + ".lock"])
        guard case .connected = try ProcessEndpoints.connect(toPath: listener.path) else {
            Issue.record("the living listener was swept")
            return
        }
        #expect(sweeper.sweep() == 0)
    }

    @Test("endpoints made while others sweep are not mistaken for dead ones")
    func sweepRace() throws {
        try onThreads(4) { [directory] _ in
            for _ in 0..<100 {
                do {
                    let endpoints = try ProcessEndpoints(in: directory)
                    let listener = try endpoints.makeListener(backlog: 64)
                    endpoints.sweep()
                    guard case .connected = try ProcessEndpoints.connect(toPath: listener.path) else {
                        Issue.record("a living listener was swept")
                        return
                    }
                } catch {
                    Issue.record(error)
                }
            }
        }
        #expect(try files() == [])
    }

    #if PORT_FAULTS
    @Test("endpoints without a descriptor left fail with their own code and keep none open")
    func descriptorLimit() async throws {
        let root = scratch.path
        await #expect(processExitsWith: .success) { [root = root as String] in
            await Pools.start()
            let ports = try PortDirectory.open(path: root + "/ports")
            expectNoNewDescriptors {
                for code in [EMFILE, ENFILE] {
                    let (error, hits) = SystemCallFaults.with([.init(.open, .fail(code), times: 100)]) {
                        portError { () throws(PortError) in _ = try ports.endpoints() }
                    }
                    #expect(hits == 1)
                    #expect(error?.code == .descriptorLimit && error?.systemError == SystemError(code))
                }
            }
            #expect(try ports.endpoints() === ports.endpoints())
        }
    }

    @Test("a sweep without a descriptor left sweeps nothing, and the next one does")
    func sweepWithoutDescriptors() throws {
        let endpoints = try ProcessEndpoints(in: directory)
        let dead = EndpointFileName.makeID()
        try scratch.makeFile(dead + ".lock")
        try scratch.makeFile(dead + ".1")
        let (removed, _) = SystemCallFaults.with([.init(.open, .fail(EMFILE), times: 100)]) { endpoints.sweep() }
        #expect(removed == 0)
        #expect(try files().count == 3)
        #expect(endpoints.sweep() == 2)
        #expect(try files() == [endpoints.id + ".lock"])
    }
    #endif

    @Test("a forked child has endpoints of its own, and leaves its parent's sockets alone")
    func fork() async throws {
        let root = scratch.path
        await #expect(processExitsWith: .success) { [root = root as String] in
            let ports = try PortDirectory.open(path: root + "/ports")
            let parent = try ports.endpoints().id
            var listener: Listener? = try ports.endpoints().makeListener(backlog: 4)
            let name = listener?.name ?? ""
            let child = try forking {
                listener = nil
                guard let own = try? ports.endpoints(), own.id != parent, own.process == sysProcessID(),
                    (try? sysStatus(name, in: ports.sockets.raw)) != .some(nil),
                    (try? LockedFile.isLocked(EndpointFileName.lock(of: parent), in: ports.sockets)) == true
                else { return ["the parent's sockets are gone, or the child has none of its own"] }
                return []
            }
            #expect(exitStatus(of: child) == 0)
            guard case .connected = try ProcessEndpoints.connect(toPath: ports.sockets.path + "/" + name) else {
                exit(3)
            }
            listener = nil
            #expect(try sysStatus(name, in: ports.sockets.raw) == nil)
        }
    }
}
