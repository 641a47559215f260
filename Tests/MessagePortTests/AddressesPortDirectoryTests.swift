// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import Glibc
import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite("PortDirectory", .leakCheck) struct AddressesPortDirectoryTests {
    let scratch: AddressScratch
    var path: String { scratch.path("ports") }

    init() throws {
        scratch = try AddressScratch()
    }

    @Test("a directory that is not there is made with its two parts, closed to others")
    func made() throws {
        let directory = try PortDirectory.open(path: path)
        #expect(directory.path == path)
        #expect(directory.names.path == path + "/names")
        #expect(directory.sockets.path == path + "/sockets")
        for part in [path, path + "/names", path + "/sockets"] {
            let status = try #require(try sysStatus(part, in: AT_FDCWD))
            #expect(status.isDirectory && status.mode & 0o777 == 0o700 && status.owner == sysUserID())
        }
        let names = try #require(try sysStatus(path + "/names", in: AT_FDCWD))
        #expect(try sysStatus(directory.names.raw).isSameFile(as: names))
    }

    @Test("a directory that is there is opened with what is in it")
    func opened() throws {
        _ = try PortDirectory.open(path: path)
        try scratch.makeFile("ports/names/kept")
        let again = try PortDirectory.open(path: path + "///")
        #expect(again.path == path)
        #expect(try sysList(again.names.path) == ["kept"])
    }

    @Test("a symbolic link is refused, wherever it leads, also with a trailing slash", arguments: ["", "/"])
    func link(slash: String) throws {
        _ = try PortDirectory.open(path: scratch.path("real"))
        #expect(symlink(scratch.path("real"), path) == 0)
        try expectRefusal(.symbolicLink, at: path) { () throws(PortError) in
            _ = try PortDirectory.open(path: path + slash)
        }
    }

    @Test("a dangling symbolic link is refused, and nothing is made where it leads")
    func danglingLink() throws {
        #expect(symlink(scratch.path("nowhere"), path) == 0)
        #expect(throws: PortError.self) { try PortDirectory.open(path: path) }
        #expect(try sysStatus(scratch.path("nowhere"), in: AT_FDCWD) == nil)
    }

    @Test("a file at its path is refused")
    func file() throws {
        try scratch.makeFile("ports")
        try expectRefusal(.notDirectory, at: path)
    }

    @Test("a directory that others may read, write or search is refused", arguments: [0o755, 0o720, 0o701, 0o777])
    func openToOthers(mode: mode_t) throws {
        _ = try sysMakeDirectory(path)
        #expect(chmod(path, mode) == 0)
        try expectRefusal(.openToOthers, at: path)
        #expect(chmod(path, 0o700) == 0)
        #expect(throws: Never.self) { try PortDirectory.open(path: path) }
    }

    @Test("another user's directory is refused", .enabled(if: isRoot, "only root can give a directory away"))
    func otherOwner() throws {
        _ = try sysMakeDirectory(path)
        #expect(chown(path, otherUser, otherUser) == 0)
        try expectRefusal(.otherOwner, at: path)
    }

    @Test("a part is verified as the whole is", arguments: ["names", "sockets"])
    func parts(name: String) throws {
        _ = try sysMakeDirectory(path)
        _ = try sysMakeDirectory(scratch.path("real"))
        #expect(symlink(scratch.path("real"), path + "/" + name) == 0)
        try expectRefusal(.symbolicLink, at: path + "/" + name) { () throws(PortError) in
            _ = try PortDirectory.open(path: path)
        }
        #expect(unlink(path + "/" + name) == 0)
        _ = try sysMakeDirectory(path + "/" + name)
        #expect(chmod(path + "/" + name, 0o770) == 0)
        try expectRefusal(.openToOthers, at: path + "/" + name) { () throws(PortError) in
            _ = try PortDirectory.open(path: path)
        }
    }

    @Test("a missing parent is not made: the error has the kernel's reason")
    func missingParent() throws {
        let error = portError { () throws(PortError) in _ = try PortDirectory.open(path: scratch.path("none/ports")) }
        #expect(error == PortError(SystemError(ENOENT), subject: .path(scratch.path("none/ports"))))
    }

    @Test("a path that is not absolute is refused", arguments: ["", "ports", "./ports"])
    func relative(path: String) throws {
        let error = portError { () throws(PortError) in _ = try PortDirectory.open(path: path) }
        #expect(error == PortError(.directoryUntrusted, subject: .path(path, .notAbsolute)))
    }

    @Test("a path that holds a NUL is refused, and nothing is made at the path before it")
    func pathWithNUL() throws {
        let error = portError { () throws(PortError) in _ = try PortDirectory.open(path: path + "\0more") }
        #expect(error == PortError(.directoryUntrusted, subject: .path(path + "\0more", .hasNUL)))
        #expect(try sysStatus(path, in: AT_FDCWD) == nil)
    }

    @Test("a refusal's sentence has the path and the reason")
    func sentence() throws {
        try scratch.makeFile("ports")
        let error = portError { () throws(PortError) in _ = try PortDirectory.open(path: path) }
        #expect(try #require(error).description.contains("(it is not a directory, \(path));"))
    }

    @Test("threads that make the directory at the same moment all get it")
    func race() throws {
        for round in 0..<100 {
            let path = scratch.path("race-\(round)")
            try onThreads(2) { _ in
                #expect(throws: Never.self) { try PortDirectory.open(path: path) }
            }
        }
    }

    @Test("a directory removed, replaced or opened to others is no longer current")
    func current() throws {
        let directory = try PortDirectory.open(path: path)
        #expect(directory.checkCurrent())
        #expect(chmod(path + "/names", 0o755) == 0)
        #expect(!directory.checkCurrent())
        #expect(chmod(path + "/names", 0o700) == 0)
        #expect(directory.checkCurrent())
        #expect(rmdir(path + "/sockets") == 0)
        #expect(!directory.checkCurrent())
        _ = try sysMakeDirectory(path + "/sockets")
        #expect(!directory.checkCurrent())
    }

    @Test("a user's directory is where it is said to be, else in the runtime directory, else in the temporary one")
    func userPath() {
        let path = { PortDirectory.userPath(configured: nil, runtimeDirectory: $0, temporaryDirectory: $1, user: 7) }
        let configured = {
            PortDirectory.userPath(configured: $0, runtimeDirectory: "/run", temporaryDirectory: nil, user: 7)
        }
        #expect(configured("/private/names") == "/private/names")
        #expect(configured("names") == "/run/swift-ports")
        #expect(path("/run/user/7", "/var/tmp") == "/run/user/7/swift-ports")
        #expect(path(nil, "/var/tmp") == "/var/tmp/swift-ports-7")
        #expect(path(nil, nil) == "/tmp/swift-ports-7")
        #expect(path("run", "tmp") == "/tmp/swift-ports-7")
    }

    @Test("a service without a runtime directory of its user's has the first that was made for it")
    func servicePath() {
        let path = { (service: String?, runtime: String?) in
            PortDirectory.userPath(
                configured: nil, runtimeDirectory: runtime, serviceDirectories: service, temporaryDirectory: "/var/tmp",
                user: 7)
        }
        #expect(path("/run/store", nil) == "/run/store/swift-ports")
        #expect(path("/run/store:/run/more", nil) == "/run/store/swift-ports")
        #expect(path("/run/store", "/run/user/7") == "/run/user/7/swift-ports")
        #expect(path("/run/store", "run") == "/run/store/swift-ports")
        for none in ["", "store", ":/run/more", "store:/run/more"] {
            #expect(path(none, nil) == "/var/tmp/swift-ports-7", "\(none)")
        }
        #expect(
            PortDirectory.userPath(
                configured: "/names", runtimeDirectory: nil, serviceDirectories: "/run/store", temporaryDirectory: nil,
                user: 7) == "/names")
    }

    @Test("in the directory of a service, which may be open to others, a subdirectory is made that is closed to them")
    func serviceDirectory() async throws {
        let root = scratch.path("store")
        #expect(mkdir(root, 0o755) == 0)
        await #expect(processExitsWith: .success) { [root = root as String] in
            for variable in ["XDG_RUNTIME_DIR", "SWIFT_PORT_DIRECTORY"] { unsetenv(variable) }
            setenv("RUNTIME_DIRECTORY", root + ":/nowhere", 1)
            let directory = try PortDirectory.user()
            #expect(directory.path == root + "/swift-ports")
            #expect(try sysStatus(atPath: directory.path)?.mode == S_IFDIR | 0o700)
            exit(EXIT_SUCCESS)
        }
    }

    @Test("the user's directory is opened once, and again when it was removed; a failure is not remembered")
    func user() async throws {
        let root = scratch.path
        await #expect(processExitsWith: .success) { [root = root as String] in
            setenv("XDG_RUNTIME_DIR", root, 1)
            let first = try PortDirectory.user()
            #expect(first.path == root + "/swift-ports")
            #expect(try PortDirectory.user() === first)
            let (one, two) = (try first.endpoints(), try first.endpoints())
            #expect(one === two)

            #expect(chmod(first.path, 0o750) == 0)
            let refusal = PortError(.directoryUntrusted, subject: .path(first.path, .openToOthers))
            #expect(portError { () throws(PortError) in _ = try PortDirectory.user() } == refusal)
            #expect(chmod(first.path, 0o700) == 0)
            #expect(try PortDirectory.user() === first)

            try FileManager.default.removeItem(atPath: first.path)
            let second = try PortDirectory.user()
            #expect(second !== first && second.checkCurrent())
            #expect(try PortDirectory.user() === second)
            exit(EXIT_SUCCESS)
        }
    }

    #if PORT_FAULTS
    @Test("without a descriptor left, opening fails with its own code at each step and keeps none open")
    func descriptorLimit() async throws {
        let root = scratch.path
        await #expect(processExitsWith: .success) { [root = root as String] in
            await Pools.start()
            _ = try PortDirectory.open(path: root + "/ports")
            expectNoNewDescriptors {
                for step in 0..<3 {
                    for code in [EMFILE, ENFILE] {
                        let (error, hits) = SystemCallFaults.with([.init(.open, .fail(code), skipping: step)]) {
                            portError { () throws(PortError) in _ = try PortDirectory.open(path: root + "/ports") }
                        }
                        #expect(hits == 1)
                        #expect(error?.code == .descriptorLimit)
                    }
                }
            }
        }
    }
    #endif

    private func expectRefusal(
        _ reason: PortError.StaticReason, at path: String, _ location: SourceLocation = #_sourceLocation,
        _ body: (() throws(PortError) -> Void)? = nil
    ) throws {
        let error = portError { () throws(PortError) in
            if let body { try body() } else { _ = try PortDirectory.open(path: path) }
        }
        #expect(
            error == PortError(.directoryUntrusted, subject: .path(path, reason)), sourceLocation: location)
    }
}
