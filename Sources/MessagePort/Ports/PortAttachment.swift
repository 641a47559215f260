// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// What goes along when a port moves to another process, and otherwise ends with it: a name.
package protocol PortAttachment: AnyObject, Sendable {
    /// What the other process needs; nil when it has ended.
    func pack() throws(PortError) -> FileSnapshot?
    /// It is the other process's.
    func leave()
}

/// The file of a name that has come with a port. The lock is this process's, too.
package final class ReceivedName: PortAttachment {
    /// The directory in which it is.
    package let directory: PortDirectory  // immutable
    /// The name of the file.
    package let fileName: String  // immutable
    private let file: Mutex<LockedFile?>

    /// Nil when the name does not lead to the file any more. Changes nothing.
    ///
    /// - Throws: `directoryUntrusted` when this process does not have the directory open; `systemCallFailed`.
    init?(_ packed: FileSnapshot) throws(PortError) {
        guard let directory = PortDirectory.opened(byPath: packed.directory) else {
            throw PortError(.directoryUntrusted, subject: .path(packed.directory))
        }
        self.directory = directory
        fileName = packed.name
        guard let locked = try LockedFile(packed, in: directory.names) else { return nil }
        file = Mutex(consume locked)
    }

    /// Writes into the file that this process has the name. Where that fails, for example because the disk is full, the
    /// file names the former owner, and leads here all the same.
    func note(_ address: PortAddress) {
        guard let record = NameRecord(of: address) else { return }
        file.withLock { file in _ = try? file?.replace(record.contents) }
    }

    package func pack() throws(PortError) -> FileSnapshot? {
        try file.withLock { (file) throws(PortError) in try file?.packed() }
    }

    package func leave() {
        let file = file.withLock { $0.take() }
        if let file { file.leave() }
    }

    /// Takes the file out: something else holds the name from now on.
    package func take() -> LockedFile? { file.withLock { $0.take() } }

    /// Frees the name.
    func remove() {
        let file = file.withLock { $0.take() }
        if let file { file.remove() }
    }
}

extension LocalPort {
    /// The names that have come with the port, and that nothing else holds yet.
    package var receivedNames: [ReceivedName] {
        state.withLock { $0.coldState.endings.values.compactMap { $0.attachment as? ReceivedName } }
    }

    /// The names that go along.
    var attachments: [any PortAttachment] { state.withLock { $0.coldState.endings.values.compactMap(\.attachment) } }
}
