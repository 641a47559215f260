// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A file that is locked and names no owner belongs to a process that is about to write its record, to give the name up,
// or to sweep the file away. Each needs a few system calls. So a process that finds such a file tries again, soon at
// first and then less often, and in the end accepts what it finds.

import MessagePort
import PortSystem

extension PortNameServer {
    /// The first pause, and the number of pauses; each is twice as long as the one before, 0.2 s together.
    private static let firstPause = Duration.microseconds(100)
    private static let pauseCount = 11

    /// Locks a name's file.
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - names: the directory of names.
    ///   - prepare: called before the file is locked, when the name seems to be free.
    /// - Returns: the file, with the contents that a dead owner left.
    /// - Throws: `nameTaken`, with the owner, if the file names one; what `prepare` throws.
    static func take(
        _ name: PortName, in names: TrustedDirectory, preparing prepare: () throws(PortError) -> Void = {}
    ) throws(PortError) -> LockedFile {
        var (owner, pause) = (Int32?.none, firstPause)
        for pauses in 0...pauseCount {
            switch try attempt(name, in: names, preparing: prepare) {
            case .locked(let file): return file
            case .held(let contents): owner = NameRecord(contents: contents)?.owner
            }
            // A dead owner's record is still there for a moment when another has the lock.
            if let owner, owner == sysProcessID() || !sysHasEnded(owner) { break }
            if pauses == pauseCount { break }
            ThreadEvent().wait(until: .after(pause))
            pause *= 2
        }
        throw PortError(.nameTaken, subject: .name(name.string), owner: owner)
    }

    /// One attempt. In a shared directory no other user can lock a user's file; the directory's owner and root remove
    /// what a dead process has left.
    private static func attempt(
        _ name: PortName, in names: TrustedDirectory, preparing prepare: () throws(PortError) -> Void
    ) throws(PortError) -> LockedFile.Attempt {
        do throws(PortError) {
            return try LockedFile.take(name.fileName, in: names, preparing: prepare)
        } catch {
            guard error.code == .directoryUntrusted,
                let file = try? LockedFile.signedContents(name.fileName, in: names),
                !sysIsOwnUser(file.user)
            else { throw error }
            let denied = NameRules.denials(in: names)(file.user, name) ? file.user : nil
            if LockedFile.removeLeftover(name.fileName, in: names, deniedTo: denied) {
                return try LockedFile.take(name.fileName, in: names, preparing: prepare)
            }
            return .held(contents: file.contents)
        }
    }
}
