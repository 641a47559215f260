// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort
import PortCLibrary
import PortSystem
import Synchronization

/// A wait for one name: decides when to look it up again, and does so.
final class NameWait: Sendable {
    private struct State: ~Copyable {
        var watch: NameDirectoryWatch
        var mustLook = true
        var declared = DeclaredLooks()
    }

    private let name: PortName  // immutable
    private let file: String  // immutable
    private let server: PortNameServer  // immutable
    private let path: String  // immutable; the directory's
    private let mayBeShared: Bool  // immutable
    private let declaredPath: String  // immutable
    /// The descriptor to wait on: readable while something may have changed.
    let raw: CInt  // immutable; the watch's, which lives as long as this object
    private let state: Mutex<State>

    /// Begins to watch.
    ///
    /// - Throws: as `NameDirectoryWatch.begin`.
    init(for name: PortName, in server: PortNameServer) throws(PortError) {
        self.name = name
        file = name.fileName
        self.server = server
        let directory = try server.openDirectory()
        path = directory.path
        mayBeShared = directory.mayBeShared
        declaredPath = directory.declaredPath(of: name)
        let watch = try NameDirectoryWatch.begin(
            at: directory.path, followsDeclared: true, mayBeShared: directory.mayBeShared, looks: server.looks)
        raw = watch.raw
        state = Mutex(State(watch: watch))
    }

    /// When to look the name up again although nothing has changed.
    var nextLook: MonotonicInstant { state.withLock { min($0.declared.next, $0.watch.nextLook) } }

    /// Looks the name up, if anything has changed since the last time. Never waits.
    ///
    /// - Parameter isLast: whether to look the name up although the interval has not passed.
    /// - Returns: the right; nil while there is none.
    /// - Throws: as `PortNameServer.waitFor(_:within:)`.
    func look(isLast: Bool = false) throws(PortError) -> SendRight? {
        let result = state.withLock { state -> Result<(mustLook: Bool, isThere: Bool), PortError> in
            do throws(PortError) {
                if isLast { state.watch.lookNow() }
                let hasChanged = try state.watch.changes().concerns(file) || state.mustLook
                if hasChanged { state.declared = DeclaredLooks() }
                let mustLook = hasChanged || state.declared.next <= .now
                state.mustLook = false
                return .success((mustLook, state.watch.names != nil))
            } catch {
                return .failure(error)
            }
        }
        let (mustLook, isThere) = try result.get()
        guard mustLook else { return nil }
        // A look-up may make the directory; a wait for the name must not.
        if let right = try isThere ? server.find(name) : findDeclared() { return right }
        let isDeclared = ((try? sysStatus(atPath: declaredPath)) ?? nil) != nil
        state.withLock { $0.declared.didFindNobody(isDeclared: isDeclared) }
        return nil
    }
}

extension NameWait {
    private func findDeclared() throws(PortError) -> SendRight? {
        let declared: TrustedDirectory
        do throws(PortError) {
            declared = try TrustedDirectory.open(path: path, makes: false, mayBeShared: mayBeShared)
                .subdirectory("declared", makes: false)
        } catch {
            if let code = error.systemError?.code, code == ENOENT || code == ENOTDIR { return nil }
            throw error
        }
        return try PortNameServer.findDeclared(name, in: declared)
    }
}

/// When to try again a declared socket that refuses. It has a path before its supervisor listens, and nothing reports
/// when the supervisor begins to listen: so the socket is tried again, soon at first, then less often, and no more
/// after a second.
private struct DeclaredLooks: Sendable {
    private(set) var next = MonotonicInstant.distantFuture
    private var pause = Duration.milliseconds(1)

    mutating func didFindNobody(isDeclared: Bool) {
        guard isDeclared, pause <= .milliseconds(512) else {
            next = .distantFuture
            return
        }
        next = .after(pause)
        pause *= 2
    }
}

extension NameDirectoryWatch.Changes {
    fileprivate func concerns(_ file: String) -> Bool {
        switch self {
        case .files(let files): files.contains(file)
        case .everything: true
        }
    }
}
