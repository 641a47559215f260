// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

extension PortError {
    /// For ``Code/workerExited``, ``Code/checkInTimedOut`` and ``Code/workerStillRunning``: which worker.
    public var worker: WorkerIdentity? {
        if case .worker(let worker, _) = subject { worker } else { nil }
    }

    /// For ``Code/workerExited``: how the worker ended.
    public var workerExit: WorkerExit? {
        if case .worker(_, let exit) = subject { exit } else { nil }
    }
}
