// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts

/// A port of another library.
private final class ForeignPort: Port {}

/// Makes calls of NSMachPort, of run loops and of name servers that are refused, and says how many.
struct Refusals {
    /// A name that another process has.
    let name: String

    private let port = NSMachPort()
    private let ended = NSMachPort()

    private func isSent(_ components: [Any], from receivePort: Port? = nil) -> Bool {
        let components = NSMutableArray(array: components)
        return port.send(before: .distantPast, msgid: 1, components: components, from: receivePort, reserved: 0)
    }

    func run() {
        let own = "\(name).own"
        ended.invalidate()
        let (foreign, bootstrap) = (ForeignPort(), NSMachBootstrapServer.shared)
        let found = bootstrap.port(forName: name)
        // An unknown name is no error, nor is a port without room.
        guard bootstrap.port(forName: own) == nil, !NSPortNameServer().removePort(forName: own) else { return }
        for _ in 0..<6 { _ = isSent([]) }
        let refusals: [() -> Bool] = [
            { !isSent([NSNumber(value: 1)]) },
            { !isSent([Data(), foreign]) },
            { !isSent([NSMachPort(machPort: 1)]) },
            { !isSent([], from: ended) },
            { !isSent([], from: foreign) },
            { !ended.send(before: .distantPast, components: nil, from: nil, reserved: 0) },
            { bootstrap.port(forName: "a\0") == nil },
            { bootstrap.port(forName: name, host: "elsewhere") == nil },
            { !NSPortNameServer().registerPort(port, name: "") },
            { !bootstrap.registerPort(port, name: name) },
            { !NSMessagePortNameServer.shared.registerPort(foreign, name: own) },
            { found.map { !bootstrap.registerPort($0, name: own) } ?? false },
            { !bootstrap.removePort(forName: name) },
            { !NSMessagePortNameServer.shared.removePort(forName: name) },
            {
                CFRunLoopAddSource(CFRunLoopGetCurrent(), nil, .defaultMode)
                return true
            },
            {
                // Without a descriptor no port is served.
                var limit = rlimit()
                getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                limit.rlim_cur = 3
                setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                port.schedule(in: .current, forMode: .default)
                return true
            },
        ]
        for (number, isRefused) in refusals.enumerated() where !isRefused() { return say("not refused: \(number)") }
        say("\(refusals.count)")
    }
}
