// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import NamedPortServer
import TestSupport
import Testing

/// Runs a program of this package in the package's directory, with the names of a scratch directory.
func run(
    _ product: String, _ arguments: [String] = [], namesIn scratch: ScratchDirectory,
    environment: [String: String?] = [:]
) async throws -> ProcessResult {
    let variables = environment.merging(["XDG_RUNTIME_DIR": scratch.path]) { own, _ in own }
    let process = try ChildProcess(
        builtProduct(product), arguments, environment: variables, in: Document.packageDirectory)
    return try await process.waitForExit()
}

extension Trait where Self == LeakCheck {
    /// A leak check for tests that name ports in this process: what a process keeps once it has done so is made before.
    static var portLeakCheck: LeakCheck {
        .leakCheck(warmingUp: {
            try withScratchDirectory { scratch in
                let port = MachPort()
                try PortNameServer(directory: scratch.path("names")).register(port, name: "warm")
                port.invalidate()
            }
        })
    }
}

/// The names that are held in a scratch directory.
func heldNames(in scratch: ScratchDirectory) throws -> [String] {
    try PortNameServer(directory: scratch.path("swift-ports")).list().map(\.name)
}
