// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// A child process with a port, and a thread with a run loop here that gets its answers.
final class PortProcess {
    let thread: ResidentThread
    let worker: PortWorker
    /// The right to the child's port.
    let right: SendRight

    /// Starts it. Both loops wait in the same way; the child's port has a name, or none.
    init(_ strategy: WaitStrategy, name: String? = nil, on placement: Placement = .anywhere) throws {
        thread = try ResidentThread(name: "near")
        try placement.near.bind(thread)
        thread.loop.waitStrategy = strategy
        let rest = [strategy.word] + (name.map { [$0] } ?? [])
        let command = Child.command + Child.arguments(.ports, rest, at: placement.far)
        worker = try PortWorker.launchProcess(WorkerProgram(command[0], Array(command.dropFirst())))
        right = try worker.checkIn(within: .seconds(30))
        try worker.port.schedule(on: thread.loop)
    }

    func end() {
        _ = try? worker.shutDown(within: .seconds(5))
        thread.stop()
        thread.join()
    }
}
