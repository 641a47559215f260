// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

func names() async throws {
    try registering()
    try taken()
    try await waiting()
    try await coming()
}

private func registering() throws {
    let names = PortNameServer.shared
    let port = MachPort()
    try names.register(port, name: "org.example.clock")

    let right = try names.lookUp("org.example.clock")
    print("the same port: \(right == port.makeSendRight())")
    for registration in try names.list() { print(registration.name) }

    port.invalidate()
    do {
        _ = try names.lookUp("org.example.clock")
    } catch {
        print(error)
    }
}

private func taken() throws {
    let first = try LocalMessagePort(name: "org.example.printer") { _, _ in nil }
    do {
        _ = try LocalMessagePort(name: "org.example.printer") { _, _ in nil }
    } catch {
        print("\(error.code), by this process: \(error.owner == PeerIdentity.current.processID)")
    }
    first.invalidate()
}

private func waiting() async throws {
    let port = MachPort()
    let client = Task {
        try await PortNameServer.shared.waitFor("org.example.late", within: .seconds(10))
    }
    try PortNameServer.shared.register(port, name: "org.example.late")
    print("found: \(try await client.value == port.makeSendRight())")
    port.invalidate()
}

private func coming() async throws {
    let port = MachPort()
    try PortNameServer.shared.register(port, name: "org.example.lamp")
    for try await event in PortNameServer.shared.events {
        switch event {
        case .appeared(let registration):
            print("\(registration.name) is there")
            port.invalidate()
        case .went(let registration):
            print("\(registration.name) is gone")
            return
        }
    }
}
