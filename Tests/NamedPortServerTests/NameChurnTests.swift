// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import Glibc
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite("A directory of names that goes and comes while it is used", .census(warmingUp: makeSpareDescriptor))
struct NameChurnTests {
    /// The errors that a call may meet while the directory is away, or only a part of it is there.
    private static let expected: Set<PortError.Code> = [.systemCallFailed, .nameTaken, .nameUnknown]

    @Test("a watch, a wait, lists and registrations beside a thread that removes and remakes it, 100 times")
    func churn() async throws {
        try await withPlace(leaving: .anything) { place in
            try withWatch(place) { events, _, watch in
                let done = Gate("the last time")
                let waiting = runOnThread { try place.names.waitFor("last", within: patience) }
                let listing = runOnThread { Self.errors(until: done) { _ = try place.names.list() } }
                let naming = runOnThread {
                    Self.errors(until: done) {
                        let port = MachPort()
                        defer { port.invalidate() }
                        try place.names.register(port, name: "name")
                        _ = try place.names.lookUp("name")
                    }
                }
                for _ in 0..<100 {
                    // Another thread may put a file into it meanwhile.
                    while FileManager.default.fileExists(atPath: place.directory) {
                        try? FileManager.default.removeItem(atPath: place.directory)
                    }
                    _ = try PortNameServer(directory: place.directory)
                }
                done.open()
                for error in try listing.join() + naming.join() {
                    #expect(Self.expected.contains(error.code), "\(error)")
                    if error.code == .systemCallFailed { #expect(error.systemError?.code == ENOENT, "\(error)") }
                }
                // The names are there again, and every observer notices.
                let port = MachPort()
                try place.names.register(port, name: "last")
                #expect(try waiting.join() == port.makeSendRight())
                expectSoon("the watch reports the name") { events.elements.contains("+last \(sysProcessID())") }
                #expect(watch.isValid)
                #expect(try place.names.list().map(\.name) == ["last"])
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
