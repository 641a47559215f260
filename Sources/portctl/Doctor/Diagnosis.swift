// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// All that `portctl doctor` tries. Each probe does what the library does, if possible by the library's own functions.
struct Diagnosis: Sendable {
    /// The directory of names; nil for the user's own.
    let directory: String?

    func findings() -> [Finding] {
        (Self.system + Self.calls + Self.limits + [place, names] + Self.speed).map { $0.make() }
    }

    private static let system = [
        Probe(subject: "kernel") { .fact("Linux \(sysKernelRelease())") },
        Probe(subject: "C library") { .fact(sysLibraryVersion()) },
    ]

    /// Each makes its call once, as the library does, whatever this process has found before.
    static let calls = [
        Probe(
            subject: "Unix sockets", cost: "No port of another process can be reached.",
            remedy: "Where a unit has RestrictAddressFamilies=, add AF_UNIX to it."
        ) {
            _ = try sysPacketSocketPair()
            return .works("")
        },
        Probe(
            subject: "epoll_pwait2", since: "Linux 5.11",
            cost: "Limits of waits and timers are rounded up to whole milliseconds."
        ) {
            try SystemProbe.preciseWait()
            return .works("")
        },
        Probe(
            subject: "eventfd",
            cost:
                "Pipes are rung in its place, with two descriptors each, and the main run loop does not serve the main "
                + "dispatch queue."
        ) {
            _ = try EventDescriptor(.eventfd)
            return .works("")
        },
        Probe(
            subject: "pidfd_open", since: "Linux 5.3",
            cost: "A thread waits for each worker, and the ends of other processes are noticed by their locks."
        ) {
            _ = try SystemProbe.processDescriptor()
            return .works("")
        },
        Probe(
            subject: "pidfd_send_signal", since: "Linux 5.1", cost: "Workers are signalled by their numbers."
        ) {
            try SystemProbe.processSignal()
            return .works("")
        },
        Probe(
            subject: "waitid(P_PIDFD)", since: "Linux 5.4", cost: "Workers are waited for by their numbers."
        ) {
            try SystemProbe.processWait()
            return .works("")
        },
        Probe(
            subject: "SO_PEERPIDFD", since: "Linux 6.5",
            cost: "ConnectingPeer.openProcess() throws, and peers of other PID namespaces are counted by connection."
        ) {
            let (end, other) = try sysPacketSocketPair()
            defer { withExtendedLifetime(other) {} }
            _ = try sysPeerProcess(end.rawValue)
            return .works("")
        },
        Probe(
            subject: "SO_PEERGROUPS", since: "Linux 4.13",
            cost: "Policies by group know the first group of a peer alone, and members of a shared directory by that."
        ) {
            try SystemProbe.peerGroups()
            return .works("")
        },
        Probe(
            subject: "memfd_create", since: "Linux 3.17",
            cost:
                "There are no rings: all data goes through sockets, which takes several times as long where it is much."
        ) {
            try SystemProbe.memory(notExecutable: false)
            return .works("")
        },
        Probe(
            subject: "MFD_NOEXEC_SEAL", since: "Linux 6.3",
            cost: "Memory of rings is made without it, which vm.memfd_noexec=2 would refuse."
        ) {
            try SystemProbe.memory(notExecutable: true)
            return .works(sysNumber(named: "vm.memfd_noexec").map { "vm.memfd_noexec is \($0)" } ?? "")
        },
        Probe(
            subject: "open-file locks", since: "Linux 3.15",
            cost:
                "Another kind of lock is used in a directory that is made here; one that is shared with systems that have these "
                + "locks cannot be."
        ) {
            try SystemProbe.openFileLock()
            return .works("")
        },
        Probe(
            subject: "renameat2", since: "Linux 3.15",
            cost: "A new name of a port is a second name of its file for a moment, which some file systems do not have."
        ) {
            try SystemProbe.exclusiveRename()
            return .works("")
        },
        Probe(
            subject: "close_range", since: "Linux 5.9",
            cost: "A worker's start closes the descriptors that it is not to have one by one, as /proc lists them."
        ) {
            try SystemProbe.closeRange()
            return .works("")
        },
        Probe(
            subject: "inotify",
            cost:
                "Waiting for names, and watching them, throws watchLimit, or looks now and then where the program allows that.",
            remedy: "Raise fs.inotify.max_user_instances and fs.inotify.max_user_watches, or end what holds them."
        ) {
            let watch = try DirectoryWatch()
            watch.remove(try watch.add("/", .created))
            return .works("")
        },
        Probe(
            subject: "wake channels",
            cost: "There are no rings, as without memfd_create.",
            remedy: "Allow socketpair(2) of stream sockets and shutdown(2), and let the program have more descriptors."
        ) {
            try WakeChannel.prove()
            return .works("")
        },
        Probe(
            subject: "/proc",
            cost:
                "Start times of processes, and limits of control groups, are not known; programs start themselves as workers by it.",
            remedy: "Mount proc there, as containers do unless they are told otherwise."
        ) {
            _ = try sysOpen("/proc/self/stat", .reading)
            return .works("")
        },
    ]
}
