// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import MessagePort
import NamedPortServer
import TestSupport
import Testing

@Suite("Foundation's name servers (D-N7)", .machPorts, .serialized) struct NameServerTests {
    private static let servers: [NSPortNameServer] = [
        NSPortNameServer(), NSMachBootstrapServer.shared, NSMessagePortNameServer.shared,
    ]

    @Test("D-N7: a registered port is found by all servers and by PortNameServer, with host nil or \"\"")
    func found() throws {
        for (index, server) in Self.servers.enumerated() {
            let (port, name) = (NSMachPort(), freshName("found.\(index)"))
            #expect(server.port(forName: name) == nil)
            #expect(server.registerPort(port, name: name))
            for other in Self.servers {
                #expect(other.port(forName: name) === port)
                #expect(other.port(forName: name, host: nil) === port && other.port(forName: name, host: "") === port)
                #expect(other.port(forName: name, host: "localhost") == nil)
                #expect(other.port(forName: name, host: "*") == nil)
            }
            #expect(NSMachBootstrapServer.shared.servicePort(withName: name) === port)
            #expect(try PortNameServer.shared.lookUp(name).isDead == false)
            port.invalidate()
            #expect(server.port(forName: name) == nil)
        }
    }

    @Test("D-N7: a live name is refused, also to its own port's second object; a port may have several names")
    func liveName() {
        let (port, other) = (NSMachPort(), NSMachPort())
        let (first, second) = (freshName("live.1"), freshName("live.2"))
        let server = NSMachBootstrapServer.shared
        #expect(server.registerPort(port, name: first))
        #expect(!server.registerPort(other, name: first))
        #expect(!NSMessagePortNameServer.shared.registerPort(other, name: first))
        #expect(server.registerPort(port, name: second))
        #expect(server.port(forName: first) === port && server.port(forName: second) === port)
        port.invalidate()
        #expect(server.registerPort(other, name: first) && server.port(forName: first) === other)
        other.invalidate()
    }

    @Test("D-N7: a name is taken away by NSPortNameServer, and not by the Mach and message servers")
    func removal() {
        let (port, name, server) = (NSMachPort(), freshName("removal"), NSPortNameServer())
        #expect(server.registerPort(port, name: name))
        #expect(!NSMachBootstrapServer.shared.removePort(forName: name))
        #expect(!NSMessagePortNameServer.shared.removePort(forName: name))
        #expect(server.port(forName: name) === port)
        #expect(server.removePort(forName: name) && !server.removePort(forName: name))
        #expect(server.port(forName: name) == nil && port.isValid)
        port.invalidate()
    }

    @Test("D-N7: names that are none, and ports that do not receive, are refused")
    func refused() throws {
        let (port, server) = (NSMachPort(), NSMachBootstrapServer.shared)
        for name in ["", "a\0b", String(repeating: "x", count: 5_000)] {
            #expect(!server.registerPort(port, name: name), "\(name.prefix(5))")
            #expect(server.port(forName: name) == nil && !NSPortNameServer().removePort(forName: name))
        }
        let receiver = MachPort()
        try PortNameServer.shared.register(receiver, name: freshName("sender"))
        let sender = try #require(server.port(forName: freshName("sender")))
        #expect(!server.registerPort(sender, name: freshName("of-a-sender")))
        #expect(!server.registerPort(NSMachPort(machPort: 1), name: freshName("of-none")))
        sender.invalidate()
        receiver.invalidate()
        port.invalidate()
    }

    @Test("D-N7: the shared servers are one object each, also as sharedInstance()")
    func shared() {
        #expect(NSMachBootstrapServer.sharedInstance() === NSMachBootstrapServer.shared)
        #expect(NSMessagePortNameServer.sharedInstance() === NSMessagePortNameServer.shared)
        let (port, name) = (NSMachPort(), freshName("shared"))
        #expect(NSMachBootstrapServer.sharedInstance().registerPort(port, name: name))
        #expect(NSMachBootstrapServer.sharedInstance().servicePort(withName: name) === port)
        #expect(NSMessagePortNameServer.sharedInstance().port(forName: name) === port)
        port.invalidate()
        #expect(MachBootstrapServer.self == NSMachBootstrapServer.self)
        #expect(MessagePortNameServer.self == NSMessagePortNameServer.self)
    }
}
