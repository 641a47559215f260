// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A file that is locked and does not say by whom belongs to somebody who is about to write that, or to give the name
// up, or to a process that sweeps it away. Each takes a few system calls. So whoever finds such a file looks again,
// soon at first and then less often, and in the end goes by what it sees.

import MessagePort
import PortSystem

extension PortNameServer {
    /// The first pause, and how many there are; each is twice as long as the one before: 0.2 s together.
    private static let firstPause = Duration.microseconds(100)
    private static let pauseCount = 11

    /// Takes the lock of a name's file.
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - names: where.
    ///   - prepare: called before that, when the name seems to be free.
    /// - Returns: the file, with what a dead owner has left in it.
    /// - Throws: `nameTaken`, with the owner, unless that does not say who it is; what `prepare` throws.
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

    /// One attempt. In a shared directory another user's file is taken by nobody else; what a dead one has left the
    /// directory's owner and root take away.
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
