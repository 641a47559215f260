// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The listening sockets that a supervisor passed to this process, as sd_listen_fds(3) says. They are close-on-exec from
// the first check-in on, so no child gets them, whatever its environment says; and LISTEN_PID is not a child's id.

import PortCLibrary
import MessagePort
import PortSystem
import Synchronization

/// The process's inherited sockets. Each is used at most once.
struct InheritedSockets: Sendable {
    private let process: Int32
    private let names: [String]
    /// The names for which descriptors were used, by the descriptor's index.
    private var used: [Int: PortName] = [:]

    private static let current = Mutex<InheritedSockets?>(nil)

    /// Finds the socket for a name and passes it to `use`: the one bound to the path, else one that has the name as its
    /// descriptor name and is declared for no other name.
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - path: the path at which the name's socket is declared.
    ///   - use: what to do with the number of the valid, non-blocking descriptor and its address. When it throws, the
    ///     socket can be used again; otherwise the descriptor is closed.
    /// - Throws: `nameNotDeclared`, `alreadyCheckedIn`, `activationInvalid`; what `use` throws.
    static func withSocket(
        for name: PortName, declaredAt path: String, _ use: (CInt, PortAddress) throws(PortError) -> Void
    ) throws(PortError) {
        // The lock is held throughout, so that of two threads that check in, one gets the socket and the other an
        // error.
        try current.withLock { (current) throws(PortError) in
            if current?.process != sysProcessID() { current = try inherited() }
            guard var sockets = current else { throw PortError(.nameNotDeclared, subject: .name(name.string)) }
            let (index, address) = try sockets.find(name, path)
            let descriptor = SupervisorVariables.firstDescriptor + CInt(index)
            try use(descriptor, address)
            sysClose(descriptor)
            sockets.used[index] = name
            current = sockets
        }
    }

    private static func inherited() throws(PortError) -> InheritedSockets? {
        guard let variables = try SupervisorVariables.current() else { return nil }
        do throws(SystemError) {
            for index in variables.names.indices {
                try sysCloseOnExec(SupervisorVariables.firstDescriptor + CInt(index))
            }
        } catch {
            throw PortError(.activationInvalid, system: error)
        }
        return InheritedSockets(process: sysProcessID(), names: variables.names)
    }

    /// The first unused and suitable socket for the name: among those at the declared path, then among those that have
    /// the name and are declared for no other. Several sockets of one unit have one descriptor name.
    private func find(_ name: PortName, _ path: String) throws(PortError) -> (index: Int, address: PortAddress) {
        var refusal: PortError?
        for isByPath in [true, false] {
            for (index, own) in names.enumerated() where used[index] == nil {
                let descriptor = SupervisorVariables.firstDescriptor + CInt(index)
                let bound = try? sysSocketPath(descriptor)
                let isDeclared = bound.map { Self.isSame($0, path) } ?? false
                if isByPath != isDeclared { continue }
                if !isByPath {
                    guard own.utf8.elementsEqual(name.string.utf8) else { continue }
                    if let bound, Self.isSibling(bound, of: path) { continue }
                }
                if let found = Self.refusal(of: descriptor, bound) {
                    refusal = refusal ?? found
                } else if let bound {
                    return (index, PortAddress(path: isDeclared ? path : bound))
                }
            }
        }
        if let refusal { throw refusal }
        let wasUsed = used.values.contains(name)
        throw PortError(wasUsed ? .alreadyCheckedIn : .nameNotDeclared, subject: .name(name.string))
    }

    /// Whether two paths are in the same directory.
    private static func isSibling(_ path: String, of other: String) -> Bool {
        let directories = [path, other].compactMap { path in
            path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[..<$0]) }
        }
        return directories.count == 2 && isSame(directories[0], directories[1])
    }

    /// Why no port can listen with a descriptor; nil when a port can, and then the descriptor is non-blocking from now
    /// on.
    private static func refusal(of descriptor: CInt, _ path: String?) -> PortError? {
        func invalid(_ reason: PortError.StaticReason) -> PortError {
            PortError(.activationInvalid, subject: path.map { .path($0, reason) } ?? .reason(reason))
        }
        do throws(SystemError) {
            guard try sysIsPacketSocket(descriptor) else { return invalid(.notPacketSocket) }
            guard try sysIsListening(descriptor) else { return invalid(.notListening) }
            guard let path, path.utf8.first == UInt8(ascii: "/") else { return invalid(.noPath) }
            // The supervisor's copy is non-blocking from now on, too; systemd's is anyway.
            try sysSetNonBlocking(descriptor)
            try sysReceivePlainly(descriptor)
            return nil
        } catch {
            return PortError(.activationInvalid, system: error)
        }
    }

    /// Whether two paths lead to the same socket.
    private static func isSame(_ path: String, _ other: String) -> Bool {
        if path.utf8.elementsEqual(other.utf8) { return true }
        guard let left = try? sysStatus(atPath: path), let right = try? sysStatus(atPath: other) else { return false }
        return left.isSameFile(as: right)
    }
}

extension PortError.StaticReason {
    fileprivate static let notPacketSocket = Self("it is no Unix socket of packets, ListenSequentialPacket=")
    fileprivate static let notListening = Self("it does not listen, Accept= must be no")
    fileprivate static let noPath = Self("it has no absolute path")
}
