// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
package import PortSystem

/// A listening socket with a path. When this value is deinitialized, it removes the path, then closes the socket; the
/// path of an inherited socket belongs to its supervisor and stays.
package struct Listener: ~Copyable, Sendable {
    /// The listening socket, non-blocking.
    package let descriptor: FileDescriptor
    /// Its name in the directory of sockets; empty for an inherited one.
    package let name: String
    /// The absolute path that others connect to.
    package let path: String
    /// What was at the path when the socket got it; nil for an inherited one, whose path is its supervisor's.
    package let made: FileStatus?
    private let endpoints: ProcessEndpoints?
    /// The lock of the path, of a socket that another process has made.
    private let lock: SharedDescriptor?
    /// Whether another process has the socket, and the path is its own.
    private var hasLeft = false
    /// Whether it was another process's.
    let hasMoved: Bool
    /// The process that has made this value: a forked child's copy removes nothing.
    private let process = sysProcessID()

    /// Whether it was inherited: its supervisor has it too.
    package var isSupervisors: Bool { endpoints == nil && lock == nil }

    init(_ descriptor: consuming FileDescriptor, name: String, of endpoints: ProcessEndpoints) {
        self.descriptor = descriptor
        self.name = name
        self.endpoints = endpoints
        (lock, hasMoved) = (nil, false)
        path = endpoints.path(of: name)
        made = (try? sysStatus(name, in: endpoints.sockets.raw)) ?? nil
    }

    /// Takes over a listening socket, non-blocking, that this process inherited, bound to an absolute path.
    package init(inherited descriptor: consuming FileDescriptor, path: String) {
        self.descriptor = descriptor
        self.path = path
        name = ""
        made = nil
        endpoints = nil
        (lock, hasMoved) = (nil, false)
    }

    /// Takes over a listening socket that another process has made and listened at. While the lock is held, which both
    /// have, no process takes the path for one that its owner has left.
    package init(moved descriptor: consuming FileDescriptor, path: String, lock: SharedDescriptor) {
        self.descriptor = descriptor
        self.path = path
        (self.lock, hasMoved) = (lock, true)
        name = ""
        made = (try? sysStatus(atPath: path)) ?? nil
        endpoints = nil
    }

    /// The lock of the path, to be given away with the socket; nil for one of a supervisor.
    func duplicateLock() throws(PortError) -> SharedDescriptor? {
        if let endpoints { return try endpoints.duplicateLock() }
        guard let lock else { return nil }
        return try PortError.converting(SharedDescriptor(duplicating: lock.rawValue))
    }

    /// Another process has the socket: this value only closes its descriptor.
    mutating func leave() { hasLeft = true }

    /// Removes the path, if it is this value's.
    ///
    /// - Returns: whether it was.
    private func removePath() -> Bool {
        if hasLeft { return false }
        if let endpoints {
            guard endpoints.process == sysProcessID() else { return false }
            endpoints.removeSocket(name)
            return true
        }
        guard let made, lock != nil, process == sysProcessID() else { return false }
        // Another socket may be there by now.
        if let there = (try? sysStatus(atPath: path)) ?? nil, made.isSameFile(as: there) {
            try? sysUnlink(path, in: AT_FDCWD)
        }
        return true
    }

    deinit {
        guard removePath() else { return }
        // Ends the waiting connections, each by itself: they may hold packets, and with the listener they would all be
        // closed at once, on this thread, with everything inside.
        sysShutDown(descriptor.raw)
        while let waiting = try? sysAccept(descriptor.raw) { _ = SharedDescriptor(connection: waiting) }
    }

    /// Removes the path and closes the socket: waiting connections are reset.
    package consuming func close() {}
}
