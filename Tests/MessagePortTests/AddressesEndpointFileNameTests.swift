// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort
import TestSupport
import Testing

@Suite("EndpointFileName", .leakCheck) struct AddressesEndpointFileNameTests {
    private static let id = "0123456789abcdef0123456789abcdef"

    @Test("a lock, a socket and a socket that is being made are recognised by their names")
    func forms() throws {
        let lock = try #require(EndpointFileName(Self.id + ".lock"))
        #expect(lock.id == Self.id && lock.isLock)
        for name in [Self.id + ".1", Self.id + ".18446744073709551615", Self.id + ".7.new"] {
            let socket = try #require(EndpointFileName(name))
            #expect(socket.id == Self.id && !socket.isLock)
        }
    }

    @Test(
        "other names are rejected",
        arguments: [
            "", ".", "README", id, id + ".", id + ".Lock", id + ".lock.new", id + ".1.old", id + ".1.new.new",
            id + ".-1",
            id + ".1a", id + "..new", id + ".123456789012345678901", "0" + id + ".1", String(id.dropLast()) + ".1",
            id.uppercased() + ".1", id.replacing("0", with: "g") + ".lock", id + ".lock\n", "é" + id.dropLast(2) + ".1",
        ])
    func foreign(name: String) {
        #expect(EndpointFileName(name) == nil)
    }

    @Test("ids are fresh and of the form")
    func ids() {
        let ids = (0..<1000).map { _ in EndpointFileName.makeID() }
        #expect(Set(ids).count == 1000)
        for id in ids { #expect(EndpointFileName(EndpointFileName.lock(of: id))?.id == id) }
    }
}
