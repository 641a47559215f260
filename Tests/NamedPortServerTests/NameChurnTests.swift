// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import Glibc
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite("A directory of names that goes and comes while it is used", .leakCheck(warmingUp: makeSpareDescriptor))
struct NameChurnTests {
    /// The errors that a call may meet while the directory is away, or only a part of it is there.
    private static let expected: Set<PortError.Code> = [.systemCallFailed, .nameTaken, .nameUnknown]

    @Test("a watch, a wait, lists and registrations beside a thread that removes and remakes it, 100 times")
    func churn() async throws {
        try await withFixture(leaving: .anything) { fixture in
            try withWatch(fixture) { events, _, watch in
                let done = Gate("the last time")
                let waiting = runOnThread { try fixture.names.waitFor("last", within: longTimeout) }
                let listing = runOnThread { Self.errors(until: done) { _ = try fixture.names.list() } }
                let naming = runOnThread {
                    Self.errors(until: done) {
                        let port = MachPort()
                        defer { port.invalidate() }
                        try fixture.names.register(port, name: "name")
                        _ = try fixture.names.lookUp("name")
                    }
                }
                for _ in 0..<100 {
                    // Another thread may put a file into it meanwhile.
                    while FileManager.default.fileExists(atPath: fixture.directory) {
                        try? FileManager.default.removeItem(atPath: fixture.directory)
                    }
                    _ = try PortNameServer(directory: fixture.directory)
                }
                done.open()
                for error in try listing.join() + naming.join() {
                    #expect(Self.expected.contains(error.code), "\(error)")
                    if error.code == .systemCallFailed { #expect(error.systemError?.code == ENOENT, "\(error)") }
                }
                // The names are there again, and every observer notices.
                let port = MachPort()
                try fixture.names.register(port, name: "last")
                #expect(try waiting.join() == port.makeSendRight())
                expectSoon("the watch reports the name") { events.elements.contains("+last \(sysProcessID())") }
                #expect(watch.isValid)
                #expect(try fixture.names.list().map(\.name) == ["last"])
                port.invalidate()
            }
        }
    }

    private static func errors(until done: Gate, _ body: () throws -> Void) -> [PortError] {
        var errors: [PortError] = []
        repeat {
            if let error = failure(body) { errors.append(error) }
        } while !done.isOpen
        return errors
    }
}
