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
    init(_ strategy: WaitStrategy, name: String? = nil) throws {
        thread = try ResidentThread(name: "near")
        thread.loop.waitStrategy = strategy
        let way = strategy == .blocking ? "blocking" : "adaptive"
        let arguments = Child.arguments(.ports, [way] + (name.map { [$0] } ?? []))
        worker = try PortWorker.launchProcess(WorkerProgram("/proc/self/exe", arguments))
        right = try worker.checkIn(within: .seconds(30))
        try worker.port.schedule(on: thread.loop)
    }

    func end() {
        _ = try? worker.shutDown(within: .seconds(5))
        thread.stop()
        thread.join()
    }
}
