// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Which worker: a thread of this process, or a child process.
public enum WorkerIdentity: Hashable, Sendable, CustomStringConvertible {
    /// A thread, with its name and the kernel's number for it.
    case thread(name: String, id: Int32)
    /// A child process, with its id. Once the worker has ended, the kernel may give the id to another process.
    case process(id: Int32)

    /// The kind and the number, as in "process 4711".
    public var description: String {
        switch self {
        case .thread(let name, let id): "thread \(id) (\(name))"
        case .process(let id): "process \(id)"
        }
    }
}
