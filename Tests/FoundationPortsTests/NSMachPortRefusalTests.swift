// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
@testable import FoundationPorts
import MessagePort
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite("NSMachPort: refusals (D-S18)", .machPorts, .serialized) struct NSMachPortRefusalTests {
    /// How the lines of the refusals of `mach-port-peer` begin, or what they say, in their order.
    private static let lines = [
        "NSMachPort: a message was not sent: component 0, a NSNumber, is neither data nor a port of this library",
        "NSMachPort: a message was not sent: component 1, a ForeignPort, is neither data nor a port of this library",
        "NSMachPort: a message was not sent: component 0, a NSMachPort, is an invalid port, or one that sends",
        "NSMachPort: a message was not sent: no reply arrives at an invalid port, or one that sends only a reply",
        "NSMachPort: a message was not sent: no reply arrives at a ForeignPort of another library",
        "NSMachPort: a message was not sent: the port is invalid",
        "NSMachBootstrapServer: A port name must not contain a NUL byte",
        "NSMachBootstrapServer: ports of other hosts are not found",
        "NSPortNameServer: A port name must not be empty",
        "NSMachBootstrapServer: Another port holds the name",
        "NSMessagePortNameServer: a port that does not receive in this process gets no name",
        "NSMachBootstrapServer: a port that does not receive in this process gets no name",
        "NSMachBootstrapServer: a name is not taken away: invalidate the port",
        "NSMessagePortNameServer: a name is not taken away: invalidate the port",
        "CFRunLoop: CFRunLoopAddSource(_:_:_:) lacks an argument",
        "NSMachPort: ",
    ]

    @Test("D-S18, D-N2, D-N7: each refusal writes one line with its reason, which begins with the class that refuses")
    func refusals() throws {
        let name = freshName("refusals")
        let port = NSMachPort()
        #expect(NSPortNameServer().registerPort(port, name: name))
        let peer = try ChildProcess(
            try builtProduct("mach-port-peer"), ["refusals", name], environment: withoutLeakSearch)
        let result = try peer.waitForExit()
        #expect(result.output == "\(Self.lines.count)\n")
        let lines = result.errors.split(separator: "\n")
        #expect(lines.count == Self.lines.count, "\(result.errors)")
        for (line, start) in zip(lines, Self.lines) { #expect(line.hasPrefix(start)) }
        port.invalidate()
    }

    @Test("D-N5: a port whose end cannot be watched writes the reason")
    func endIsNotWatched() async throws {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            let port = MachPort()
            let request = EndWatch.watch(
                port.makeSendRight(), on: { () throws(SystemError) in throw SystemError(EAGAIN) }, {})
            #expect(request == nil)
        }
        let errors = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(errors.contains("FoundationPorts: the end of a port is noticed by sends and checks only: "))
    }
}
