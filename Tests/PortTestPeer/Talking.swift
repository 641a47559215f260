// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import MessagePort
import NamedPortServer
import PortSystem
import RunLoopCore

/// Writes a line to standard output, at once.
func say(_ line: String) {
    do throws(SystemError) {
        try sysWriteAll(STDOUT_FILENO, Array((line + "\n").utf8))
    } catch {
        giveUp("cannot write: \(error)")
    }
}

/// Ends the process because it does not understand what the test asked for.
func giveUp(_ text: String) -> Never {
    _ = try? sysWriteAll(STDERR_FILENO, Array("port-test-peer: \(text)\n".utf8))
    exit(2)
}

/// Becomes another user permanently: USER, or USER:GROUP with one supplementary group.
func become(_ words: String) {
    let numbers = words.split(separator: ":").compactMap { UInt32($0) }
    let groups = numbers.count > 1 ? [numbers[1]] : []
    guard let user = numbers.first, setgroups(groups.count, groups) == 0, setgid(user) == 0, setuid(user) == 0 else {
        giveUp("cannot become user \(words)")
    }
}

/// The peers that the ports of `serve`, `log` and `check-in` talk to, and what each process may occupy.
struct Rules {
    var policy: ((PortNameServer) throws(PortError) -> PeerPolicy)?
    var limits = PeerLimits.standard

    /// Reads `members`, `users:1,2` or `groups:1,2`.
    mutating func setPolicy(_ words: String) {
        let parts = words.split(separator: ":")
        let numbers = Set((parts.last ?? "").split(separator: ",").compactMap { UInt32($0) })
        switch parts.first {
        case "members": policy = { (names) throws(PortError) in try .members(of: names) }
        case "users": policy = { _ in .users(numbers) }
        case "groups": policy = { _ in .groups(numbers) }
        default: giveUp("no policy: \(words)")
        }
    }

    func hold(for port: MachPort, _ names: PortNameServer) throws(PortError) {
        if let policy { port.setPeerPolicy(try policy(names)) }
        port.setPeerLimits(limits)
    }
}

/// The names in a directory; after `shared:` in one that may be shared.
func nameServer(in directory: String) throws(PortError) -> PortNameServer {
    let prefix = "shared:"
    guard directory.hasPrefix(prefix) else { return try PortNameServer(directory: directory) }
    return try PortNameServer(sharedDirectory: String(directory.dropFirst(prefix.count)))
}

/// Locks a file for reading, as any reader of it can, until the input ends.
func lockForReading(_ path: String) {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    var lock = flock()
    lock.l_type = Int16(F_RDLCK)
    let setOpenFileLock: CInt = 37  // F_OFD_SETLK
    guard file >= 0, fcntl(file, setOpenFileLock, &lock) == 0 else { giveUp("cannot lock \(path): \(errno)") }
    say("locked")
    runUntilInputEnds()
}

/// Becomes another program.
func become(program words: [String]) -> Never {
    let arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    execvp(words[0], arguments)
    giveUp("cannot start \(words[0])")
}

/// A source that calls `didEnd` when the standard input ends; what comes before that is dropped.
func inputEndSource(_ didEnd: @escaping @Sendable () -> Void) -> RunLoopSource {
    RunLoopSource(descriptor: STDIN_FILENO) {
        if let bytes = try? sysRead(STDIN_FILENO, capacity: 4096), !bytes.isEmpty { return }
        didEnd()
    }
}

/// Runs the current loop until the standard input ends.
func runUntilInputEnds() {
    let loop = ThreadRunLoop.current
    loop.add(inputEndSource { loop.stop() })
    loop.run()
}
