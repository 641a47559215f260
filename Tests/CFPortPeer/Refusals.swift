// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts

/// Makes calls that are refused, and says how many.
struct Refusals {
    /// A name that another process has.
    let name: String

    func run(closing isClosed: Bool) {
        say("ready")
        if isClosed { close(STDERR_FILENO) }
        let own = "\(name).own"
        let port = CFMessagePortCreateLocal(nil, own as CFString, nil, nil, nil)
        let remote = CFMessagePortCreateRemote(nil, name as CFString)
        let second = CFMessagePortCreateLocal(nil, "\(own).2" as CFString, nil, nil, nil)
        CFMessagePortSetDispatchQueue(second, .global())
        let invalid = CFMessagePortCreateLocal(nil, "\(own).3" as CFString, nil, nil, nil)
        CFMessagePortInvalidate(invalid)
        let source = CFMessagePortCreateRunLoopSource(nil, port, 0)
        let refusals: [() -> Bool] = [
            { CFMessagePortCreateLocal(nil, "a\0" as CFString, nil, nil, nil) == nil },
            { CFMessagePortCreateLocal(nil, "" as CFString, nil, nil, nil) == nil },
            { CFMessagePortCreateLocal(nil, name as CFString, nil, nil, nil) == nil },
            { CFMessagePortCreateRemote(nil, "a\0" as CFString) == nil },
            { CFMessagePortCreateRemote(nil, "" as CFString) == nil },
            { CFMessagePortCreateRemote(nil, nil) == nil },
            { !CFMessagePortSetName(remote, "\(own).4" as CFString) },
            { !CFMessagePortSetName(invalid, "\(own).4" as CFString) },
            { !CFMessagePortSetName(port, nil) },
            { !CFMessagePortSetName(port, own as CFString) },
            { !CFMessagePortSetName(port, name as CFString) },
            { !CFMessagePortSetName(port, "a\0" as CFString) },
            { !CFMessagePortSetName(second, "\(own).4" as CFString) },
            { CFMessagePortCreateRunLoopSource(nil, remote, 0) == nil },
            { CFMessagePortCreateRunLoopSource(nil, second, 0) == nil },
            { CFMessagePortCreateRunLoopSource(nil, invalid, 0) == nil },
            {
                CFMessagePortSetDispatchQueue(port, .global())
                return true
            },
            {
                CFMessagePortSetDispatchQueue(remote, .global())
                return true
            },
            {
                CFMessagePortSetDispatchQueue(remote, nil)
                return true
            },
            {
                // Without a descriptor no name is looked up.
                CFMessagePortInvalidate(remote)
                var limit = rlimit()
                getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                limit.rlim_cur = 3
                setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                return CFMessagePortCreateRemote(nil, name as CFString) == nil
            },
        ]
        for (number, isRefused) in refusals.enumerated() where !isRefused() { return say("not refused: \(number)") }
        withExtendedLifetime((source, second)) {}
        say("\(refusals.count)")
        exit(0)
    }
}
