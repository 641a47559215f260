// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// What a watch of names is made of: the changes of the directory, one process descriptor for each other process that
// holds names, and the table of what was told. See Docs/Decisions/0010-watches-of-names.md.

import MessagePort
import PortSystem
import Synchronization

/// Tells which names came and went since it was asked last. It buffers nothing but what one look has found: what
/// happens while nobody asks waits in the kernel, and when that has no room, all names are looked at again.
final class NameFollower: Sendable {
    private struct State: ~Copyable {
        var watch: NameDirectoryWatch
        var table = NameTable()
        /// Descriptors of the processes that hold names, this one excepted.
        var owners: [Int32: SharedDescriptor] = [:]
        /// What was found and not told yet.
        var pending: [NameEvent] = []
        /// The next look is at everything.
        var mustLookAtAll = true
    }

    private static let directoryKey: UInt64 = 0
    private let epoll: EpollSet  // immutable
    private let state: Mutex<State>
    private let forkCount = sysForkCount()  // immutable

    /// Begins to watch; the first names that it tells are those that are held now.
    ///
    /// - Parameter path: the directory above that of names.
    /// - Throws: as `NameDirectoryWatch.begin`.
    init(_ path: String) throws(PortError) {
        let watch = try NameDirectoryWatch.begin(at: path)
        do throws(SystemError) {
            epoll = try EpollSet()
            try epoll.add(watch.raw, .readable, key: Self.directoryKey)
        } catch {
            throw PortError(error)
        }
        state = Mutex(State(watch: watch))
    }

    /// The descriptor to wait on: readable while there may be something to tell.
    var raw: CInt { epoll.raw }

    /// Whether there is something to tell that does not show in the descriptor.
    var hasMore: Bool { state.withLock { !$0.pending.isEmpty || $0.mustLookAtAll } }

    /// The next that came or went. Never waits.
    ///
    /// - Returns: nil when there is nothing now.
    /// - Throws: `forkedProcess`; `watchLimit`, `descriptorLimit`, `directoryUntrusted`, `systemCallFailed`. The next
    ///   call looks at everything again, so nothing is lost.
    func next() throws(PortError) -> NameEvent? {
        if sysForkCount() != forkCount { throw PortError(.forkedProcess) }
        let result = state.withLock { state -> Result<NameEvent?, PortError> in
            do throws(PortError) {
                if state.pending.isEmpty { try look(&state) }
                return .success(state.pending.isEmpty ? nil : state.pending.removeFirst())
            } catch {
                state.mustLookAtAll = true
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// For tests: what the directory has reported is seen as nothing.
    func forgetDirectoryReports() {
        state.withLock { state in _ = try? state.watch.changes() }
    }

    private func look(_ state: inout State) throws(PortError) {
        let ended = epoll.wait(until: .distantPast).map(\.key).filter { $0 != Self.directoryKey }
        let changes = try state.watch.changes()
        guard let names = state.watch.names else {
            state.pending += state.table.noteAll([:])
            state.mustLookAtAll = false
            return dropIdleOwners(&state)
        }
        if state.mustLookAtAll || changes == .everything {
            state.pending += state.table.noteAll(try NameEntry.all(in: names))
            state.mustLookAtAll = false
        } else if case .files(let files) = changes {
            for file in files { try note(file, in: names, &state) }
        }
        for owner in ended { try ownerDidEnd(Int32(truncatingIfNeeded: owner), in: names, &state) }
        for owner in state.table.owners { try watch(owner, in: names, &state) }
        dropIdleOwners(&state)
    }

    private func note(_ file: String, in names: TrustedDirectory, _ state: inout State) throws(PortError) {
        state.pending += state.table.note(file, try NameEntry.look(at: file, in: names))
    }

    // MARK: Owners

    /// Watches for the end of a process that holds names.
    private func watch(_ owner: Int32, in names: TrustedDirectory, _ state: inout State) throws(PortError) {
        if owner == sysProcessID() || state.owners[owner] != nil { return }
        do throws(SystemError) {
            if let process = try sysProcessDescriptor(of: owner), try !hasEnded(process) {
                let descriptor = SharedDescriptor(process)
                try epoll.add(descriptor.rawValue, .readable, key: UInt64(owner))
                state.owners[owner] = descriptor
            }
        } catch {
            throw PortError(error)
        }
        // It may have ended before it was watched, and may be another process by now.
        for file in state.table.files(of: owner) { try note(file, in: names, &state) }
    }

    private func hasEnded(_ process: borrowing FileDescriptor) throws(SystemError) -> Bool {
        try !sysPoll(process.raw, .readable, until: .distantPast).isEmpty
    }

    /// A name whose lock is held although its owner has ended is held by a child that the owner forked.
    private func ownerDidEnd(_ owner: Int32, in names: TrustedDirectory, _ state: inout State) throws(PortError) {
        forget(owner, &state)
        for file in state.table.files(of: owner) { try note(file, in: names, &state) }
    }

    private func dropIdleOwners(_ state: inout State) {
        for owner in Set(state.owners.keys).subtracting(state.table.owners) { forget(owner, &state) }
    }

    private func forget(_ owner: Int32, _ state: inout State) {
        guard let descriptor = state.owners.removeValue(forKey: owner) else { return }
        epoll.remove(descriptor.rawValue)
    }
}
