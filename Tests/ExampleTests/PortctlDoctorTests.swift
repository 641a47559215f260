// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import NamedPortServer
import PortSystem
import TestSupport
import Testing

@testable import portctl

@Suite("portctl doctor", .portLeakCheck)
struct PortctlDoctorTests {
    /// What a run of the command says.
    private struct Report {
        var status: Int32?
        var refused: Set<String> = []
        var all: Set<String> = []
        var costs: [String: String] = [:]

        init(_ result: ProcessResult) throws {
            if case .exited(let code) = result.end { status = code }
            let parsed = try JSONSerialization.jsonObject(with: Data(result.output.utf8))
            for finding in try #require(parsed as? [[String: Any]]) {
                let subject = try #require(finding["what"] as? String)
                let state = try #require(finding["state"] as? String)
                all.insert(subject)
                if state == "refused" { refused.insert(subject) }
                // A finding that something is missing also says what that costs and what helps.
                let isMissing = state == "refused" || state == "low"
                #expect((finding["cost"] as? String)?.isEmpty == (isMissing ? false : nil), "\(finding)")
                #expect((finding["remedy"] as? String)?.isEmpty == (isMissing ? false : nil), "\(finding)")
                if isMissing { costs[subject] = finding["cost"] as? String }
            }
        }
    }

    // The list says what the kernel refuses, in the words of `Tests/CRefusals`.
    private func report(in scratch: ScratchDirectory, under list: String? = nil) async throws -> Report {
        let environment = [PortDirectory.variable: scratch.path(list ?? "names")]
        let (program, words) = (try builtProduct("portctl"), ["doctor", "--json"])
        let process =
            try list.map { try ChildProcess.refusing([$0], program, words, environment: environment) }
            ?? ChildProcess(program, words, environment: environment)
        let result = try await process.waitForExit()
        #expect(result.errors == "")
        return try Report(result)
    }

    /// What is refused here anyway: the same for all lists, so it is asked for once.
    private static let refusedAnyway = Task {
        try await withScratchDirectory { try await PortctlDoctorTests().report(in: $0).refused }
    }

    #if PORT_FAULTS
    private func refused() -> Set<String> {
        Set(Doctor.calls.map { $0.make() }.filter { $0.state == .refused }.map(\.subject))
    }

    @Test(
        "it names each call that the system refuses, and no other that it makes without it",
        arguments: [
            (.socketpair, EAFNOSUPPORT, ["Unix sockets", "SO_PEERPIDFD", "SO_PEERGROUPS", "wake channels"]),
            (.epoll_wait, ENOSYS, ["epoll_pwait2"]), (.epoll_wait, EPERM, ["epoll_pwait2"]),
            (.eventfd, EPERM, ["eventfd"]),
            (.pidfd_open, ENOSYS, ["pidfd_open", "pidfd_send_signal", "waitid(P_PIDFD)"]),
            (.pidfd_send_signal, ENOSYS, ["pidfd_send_signal"]),
            (.waitid, EINVAL, ["waitid(P_PIDFD)"]),
            (.getsockopt, ENOPROTOOPT, ["SO_PEERPIDFD", "SO_PEERGROUPS", "wake channels"]),
            (.rename, ENOSYS, ["renameat2"]), (.shutdown, EPERM, ["wake channels"]),
            (.memfd_create, EPERM, ["memfd_create", "MFD_NOEXEC_SEAL", "sealed memory"]),
            (.fallocate, EPERM, ["sealed memory"]), (.fcntl, EINVAL, ["open-file locks", "sealed memory"]),
            (.close_range, ENOSYS, ["close_range"]),
            (.inotify_init, EMFILE, ["inotify"]), (.inotify_add_watch, ENOSPC, ["inotify"]),
        ] as [(SystemCall, CInt, Set<String>)])
    func refusals(call: SystemCall, code: CInt, expected: Set<String>) {
        let healthy = refused()
        // There has to be one way to wait for descriptors.
        let times = call == .epoll_wait ? 1 : Int.max
        let (found, hits) = SystemCallFaults.with([.init(call, .fail(code), times: times)]) { refused() }
        #expect(hits > 0)
        #expect(found == healthy.union(expected))
    }

    @Test("what helps depends on how the system refuses")
    func remedies() {
        func remedy(_ code: CInt) -> String? {
            SystemCallFaults.with([.init(.pidfd_open, .fail(code), times: .max)]) {
                Doctor.calls.first { $0.subject == "pidfd_open" }?.make().remedy
            }.result
        }
        #expect(remedy(EPERM)?.hasPrefix("A filter of system calls forbids it") == true)
        #expect(remedy(ENOSYS)?.hasPrefix("It needs Linux 5.3.") == true)
        #expect(remedy(EMFILE)?.hasPrefix("No descriptor is left") == true)
    }
    #endif

    @Test(
        "where the kernel refuses calls it names those, and ends in order",
        .disabled(if: hasThreadSanitizer, "its processes take minutes under the thread sanitizer"),
        arguments: [
            ("container", []), ("kernel-5.4", ["epoll_pwait2", "SO_PEERPIDFD", "MFD_NOEXEC_SEAL", "close_range"]),
            ("gvisor", ["SO_PEERPIDFD", "SO_PEERGROUPS", "MFD_NOEXEC_SEAL", "open-file locks"]),
            ("no-pidfds", ["pidfd_open", "pidfd_send_signal", "waitid(P_PIDFD)", "SO_PEERPIDFD"]),
            ("epoll_pwait2", ["epoll_pwait2"]), ("eventfd2", ["eventfd"]), ("inotify_init1", ["inotify"]),
            ("memfd_create", ["memfd_create", "MFD_NOEXEC_SEAL", "sealed memory"]),
            ("memfd-noexec", ["MFD_NOEXEC_SEAL"]), ("memory-seals", ["sealed memory"]),
            ("fallocate", ["sealed memory"]), ("shutdown", ["wake channels"]),
            ("waitid-pidfd", ["waitid(P_PIDFD)"]), ("peer-pidfd", ["SO_PEERPIDFD"]),
            ("peer-groups", ["SO_PEERGROUPS"]), ("renameat2", ["renameat2"]),
            ("pidfd_send_signal", ["pidfd_send_signal"]),
            ("pidfd_open", ["pidfd_open", "pidfd_send_signal", "waitid(P_PIDFD)"]),
            ("inotify_add_watch", ["inotify"]), ("ofd-locks", ["open-file locks"]), ("close_range", ["close_range"]),
        ] as [(String, Set<String>)])
    func refusedByKernel(list: String, expected: Set<String>) async throws {
        let anyway = try await Self.refusedAnyway.value
        try await withScratchDirectory { scratch in
            let found = try await report(in: scratch, under: list)
            #expect(found.refused == anyway.union(expected))
            #expect(found.status == (found.refused.isEmpty ? 0 : 1))
        }
    }

    @Test("it names the variable that has led to the directory")
    func rules() {
        func rule(_ path: String, _ variables: [String: String]) -> String {
            Doctor.rule(for: path) { variables[$0] }
        }
        let all = ["XDG_RUNTIME_DIR": "/run/user/1", "RUNTIME_DIRECTORY": "/run/a:/run/b", "TMPDIR": "/var/tmp"]
        #expect(rule("/names", ["SWIFT_PORT_DIRECTORY": "/names"]) == "by SWIFT_PORT_DIRECTORY")
        #expect(rule("/run/user/1/swift-ports", all) == "by XDG_RUNTIME_DIR")
        #expect(rule("/run/a/swift-ports", all) == "by RUNTIME_DIRECTORY")
        #expect(rule("/var/tmp/swift-ports-7", all) == "by TMPDIR")
        #expect(rule("/tmp/swift-ports-7", all) == "as no variable says where")
    }

    @Test("the status is 1 when something is refused, and 0 otherwise; names, workers and wake-ups work here")
    func status() async throws {
        try await withScratchDirectory { scratch in
            let found = try await report(in: scratch)
            #expect(found.status == (found.refused.isEmpty ? 0 : 1))
            #expect(found.all.isSuperset(of: Doctor.calls.map(\.subject)))
            let own: Set = ["directory", "names", "wake-up of a thread", "wake-up of a process"]
            #expect(found.all.isSuperset(of: own) && found.refused.isDisjoint(with: own))
        }
    }

    @Test("the page has each call that is tried, with what it costs not to have it")
    func page() throws {
        let rows = try Document("Docs/portctl.md").tableRows.filter { $0.count == 3 && $0[0] != "Shell" }
        let documented = rows.filter { row in Doctor.calls.contains { "`\($0.subject)`" == row[0] } }
        #expect(documented.map { $0[1] } == Doctor.calls.map { $0.since ?? "" })
        #expect(documented.map { $0[2] } == Doctor.calls.map(\.cost))
    }

    @Test("a directory that is open to others is refused, with its reason, and so are names in it")
    func openDirectory() async throws {
        try await withScratchDirectory { scratch in
            try FileManager.default.createDirectory(
                atPath: scratch.path("names"), withIntermediateDirectories: false,
                attributes: [.posixPermissions: 0o755])
            let found = try await report(in: scratch)
            #expect(found.refused.isSuperset(of: ["directory", "names"]))
            #expect(found.status == 1)
        }
    }

    @Test("a directory that is not there is reported, and is not made when --directory names it")
    func missingDirectory() async throws {
        try await withScratchDirectory { scratch in
            let result = try await portctl(["doctor"], in: scratch)
            #expect(result.end == .exited(1))
            #expect(result.output.contains("There is no directory of names at \(scratch.path("names"))"))
            #expect(!FileManager.default.fileExists(atPath: scratch.path("names")))
        }
    }

    @Test("for people it is a table, and a paragraph for each thing that is missing")
    func table() async throws {
        try await withScratchDirectory { scratch in
            let names = scratch.path("names")
            try FileManager.default.createDirectory(
                atPath: names, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o755])
            let process = try ChildProcess(
                builtProduct("portctl"), ["doctor"], environment: [PortDirectory.variable: names])
            let result = try await process.waitForExit()
            #expect(result.end == .exited(1) && result.errors == "")
            let lines = result.output.split(separator: "\n", omittingEmptySubsequences: false)
            #expect(lines.first?.hasPrefix("WHAT ") == true)
            #expect(lines.contains { $0.hasPrefix("directory ") && $0.contains(" refused ") && $0.contains(names) })
            #expect(lines.contains { $0.hasPrefix("directory: No port can have a name") })
            #expect(lines.contains { $0.hasPrefix("wake-up of a thread ") && $0.contains(" about ") })
        }
    }
}
