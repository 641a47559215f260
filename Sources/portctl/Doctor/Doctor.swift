// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer
import PortCLibrary

/// All that `portctl doctor` tries. Each probe does what the library does, if possible by the library's own functions.
struct Doctor: Sendable {
    /// The directory of names; nil for the user's own.
    let directory: String?

    func findings() -> [ProbeResult] {
        (Self.system + Self.calls + Self.limits + [directoryProbe, names] + Self.speed).map { $0.make() }
    }

    private static let system = [
        Probe(subject: "kernel") { (.fact, "Linux \(sysKernelRelease())") },
        Probe(subject: "C library") { (.fact, sysLibraryVersion()) },
    ]

    /// Each makes its call once, as the library does, whatever this process has found before.
    static let calls = [
        .call(
            "Unix sockets", cost: "No port of another process can be reached.",
            remedy: "Where a unit has RestrictAddressFamilies=, add AF_UNIX to it."
        ) { _ = try sysPacketSocketPair() },
        .call(
            "epoll_pwait2", since: "Linux 5.11",
            cost: "Limits of waits and timers are rounded up to whole milliseconds."
        ) { try SystemProbe.preciseWait() },
        .call(
            "eventfd",
            cost:
                "Pipes are used in its place, with two descriptors each, and the main run loop does not serve the main "
                + "dispatch queue."
        ) { _ = try EventDescriptor(.eventfd) },
        .call(
            "pidfd_open", since: "Linux 5.3",
            cost: "A thread waits for each worker, and the ends of other processes are noticed by their locks."
        ) { _ = try SystemProbe.processDescriptor() },
        .call(
            "pidfd_send_signal", since: "Linux 5.1", cost: "Workers are signalled by their numbers."
        ) { try SystemProbe.processSignal() },
        .call(
            "waitid(P_PIDFD)", since: "Linux 5.4", cost: "Workers are waited for by their numbers."
        ) { try SystemProbe.processWait() },
        .call(
            "SO_PEERPIDFD", since: "Linux 6.5",
            cost: "PeerIdentity.openProcess() throws, and peers of other PID namespaces are counted by connection."
        ) {
            let (end, other) = try sysPacketSocketPair()
            defer { withExtendedLifetime(other) {} }
            _ = try sysPeerProcess(end.rawValue)
        },
        .call(
            "SO_PEERGROUPS", since: "Linux 4.13",
            cost: "Policies by group know the first group of a peer alone, and members of a shared directory by that."
        ) { try SystemProbe.peerGroups() },
        .call(
            "memfd_create", since: "Linux 3.17",
            cost:
                "There are no rings: all data goes through sockets, which takes several times as long where it is much."
        ) { try SystemProbe.memory(notExecutable: false) },
        Probe(
            subject: "MFD_NOEXEC_SEAL", since: "Linux 6.3",
            cost: "Memory of rings is made without it, which vm.memfd_noexec=2 would refuse."
        ) {
            try SystemProbe.memory(notExecutable: true)
            return (.works, sysNumber(named: "vm.memfd_noexec").map { "vm.memfd_noexec is \($0)" } ?? "")
        },
        .call("sealed memory", since: "Linux 5.1", cost: "There are no rings, as without memfd_create.") {
            try SystemProbe.sealedMemory()
        },
        .call(
            "open-file locks", since: "Linux 3.15",
            cost:
                "Another kind of lock is used in a directory that is made here; one that is shared with systems that have these "
                + "locks cannot be."
        ) { try SystemProbe.openFileLock() },
        .call(
            "renameat2", since: "Linux 3.15",
            cost: "A new name of a port is a second name of its file for a moment, which some file systems do not have."
        ) { try SystemProbe.exclusiveRename() },
        .call(
            "close_range", since: "Linux 5.9",
            cost: "A worker's start closes the descriptors that it is not to have one by one, as /proc lists them."
        ) { try SystemProbe.closeRange() },
        .call(
            "inotify",
            cost:
                "Waiting for names, and watching them, throws watchLimit, or polls now and then where the program allows that.",
            remedy: "Raise fs.inotify.max_user_instances and fs.inotify.max_user_watches, or end what holds them."
        ) {
            let watch = try DirectoryWatch()
            watch.remove(try watch.add("/", .created))
        },
        .call(
            "wake channels",
            cost: "There are no rings, as without memfd_create.",
            remedy: "Allow socketpair(2) of stream sockets and shutdown(2), and let the program have more descriptors."
        ) { try WakeChannel.prove() },
        .call(
            "/proc",
            cost:
                "Start times of processes, and limits of control groups, are not known; programs start themselves as workers by it.",
            remedy: "Mount proc there, as containers do unless configured otherwise."
        ) { _ = try sysOpen("/proc/self/stat", .reading) },
    ]

    /// The limits of the system, and how much is left.
    static let limits = [
        Probe(
            subject: "descriptors",
            cost: "A service has two and one for each client; beyond the limit it refuses clients.",
            remedy: "Raise LimitNOFILE= of the unit, or ulimit -n."
        ) {
            let limits = sysDescriptorLimits()
            let text = "\(limits.soft), which this process may raise to \(limits.hard)"
            return (limits.soft < 1024 ? .low : .fact, text)
        },
        Probe(
            subject: "inotify limits",
            cost: "Each wait for a name, and each watch of names, takes an instance of the user's.",
            remedy: "Raise fs.inotify.max_user_instances and fs.inotify.max_user_watches."
        ) {
            let numbers = ["max_user_instances", "max_user_watches", "max_queued_events"].map {
                sysNumber(named: "fs.inotify.\($0)")
            }
            let words = zip(numbers, ["instances", "watches", "queued events"]).map { number, word in
                "\(number.map { "\($0)" } ?? "unknown") \(word)"
            }
            let isLow = numbers[0].map { $0 < 16 } ?? false || numbers[1].map { $0 < 64 } ?? false
            let text = words.joined(separator: ", ")
            return (isLow ? .low : .fact, text)
        },
        Probe(
            subject: "vm.overcommit_memory",
            cost:
                "The kernel gives no more memory than it has: each thread's stack and each ring counts as if all of it were used.",
            remedy: "Set vm.overcommit_memory to 0 or 1, or leave room for 8 MiB for each thread."
        ) {
            guard let number = sysNumber(named: "vm.overcommit_memory") else { return (.fact, "unknown") }
            return number == 2 ? (.low, "2") : (.fact, "\(number)")
        },
    ]

    /// Where the directory of names is, and which rule determines that.
    var directoryProbe: Probe {
        Probe(
            subject: "directory", cost: "No port can have a name, or be sent to another process.",
            remedy: "Make it mode 0700 and this user's own, or name another one by SWIFT_PORT_DIRECTORY."
        ) {
            guard let directory else {
                let user = try PortDirectory.open(path: PortDirectory.userPath(), mayBeShared: true)
                return (.works, "\(user.path), \(Self.rule(for: user.path))\(Self.sharing(of: user))")
            }
            return (.works, "\(directory), by --directory\(Self.sharing(of: try Self.existing(directory)))")
        }
    }

    /// Throws where there is no directory of names: a mistyped one is not made.
    private static func existing(_ directory: String) throws -> PortDirectory {
        guard let found = try PortDirectory.openExisting(path: directory, mayBeShared: true) else {
            throw Refusal("There is no directory of names at \(directory)")
        }
        return found
    }

    private static func sharing(of directory: PortDirectory) -> String {
        guard case .group(let owner, let group, let permissions) = directory.sharing else { return "" }
        let mode = String(permissions, radix: 8)
        return "; user \(owner) shares it with group \(group), mode \(mode), where programs ask for that"
    }

    /// Which variable led the library to the user's directory.
    static func rule(for path: String, variable: (String) -> String? = sysEnvironment) -> String {
        let own = PortDirectory.variable
        if variable(own)?.utf8.elementsEqual(path.utf8) == true { return "by \(own)" }
        for name in ["XDG_RUNTIME_DIR", "RUNTIME_DIRECTORY", "TMPDIR"] {
            guard let first = variable(name)?.utf8.split(separator: UInt8(ascii: ":")).first else { continue }
            if path.utf8.starts(with: Array(first) + Array("/swift-ports".utf8)) { return "by \(name)" }
        }
        return "as no variable says where"
    }

    /// Whether a port can get a name there and is found by it: this needs locks, sockets and renaming in the file
    /// system.
    var names: Probe {
        Probe(
            subject: "names", cost: "No port can have a name there.",
            remedy: "Name a directory of a local file system by SWIFT_PORT_DIRECTORY."
        ) {
            if let directory { _ = try Self.existing(directory) }
            let path = directory ?? PortDirectory.userPath()
            let server = try PortNameServer(sharedDirectory: path)
            let port = MachPort()
            defer { port.invalidate() }
            let name = "portctl.doctor.\(PeerIdentity.current.processID)"
            let own = port.makeSendRight()
            do throws(PortError) {
                try server.register(port, name: name)
            } catch {
                let isMembers = error.code == .nameNotAllowed || error.systemError?.code == EACCES
                guard isMembers, (try? PortDirectory.openExisting(path: path)) == nil else { throw error }
                return (.fact, "looked up; this user registers none there unless the file rules says so")
            }
            defer { server.unregister(name) }
            guard try server.lookUp(name) == own else { throw Refusal.check("a name leads elsewhere") }
            return (.works, "registered, found and freed")
        }
    }

    /// How long it takes to wake a sleeping thread or process.
    static let speed = [
        Probe(
            subject: "wake-up of a thread", cost: "Run loops do not run here.",
            remedy: "What was found says why."
        ) {
            let thread = try ResidentThread(name: "doctor")
            defer { thread.stop() }
            let port = MachPort { _, message in try? message.reply(MachMessage(id: message.id)) }
            defer { port.invalidate() }
            thread.loop.waitStrategy = .blocking
            try port.schedule(on: thread.loop)
            return (.works, try wakeUp(of: port.makeSendRight()))
        },
        Probe(
            subject: "wake-up of a process", cost: "No program can launch a worker.",
            remedy:
                "What was found says why; RLIMIT_NPROC, TasksMax= and pids.max bound how many processes there may be."
        ) {
            // The error appears here, so the worker's own output is discarded.
            let null = SharedDescriptor(try sysOpen("/dev/null", .reading))
            let worker = try Checks.launchWorker(["PORT_WAIT": "blocking"], standardError: null)
            let other = try worker.checkIn(within: Tuning.answerLimit)
            defer { _ = try? worker.shutDown() }
            return (.works, try wakeUp(of: other))
        },
    ]

    /// The median of half the time of a request and its reply: each of the two wakes one side.
    private static func wakeUp(of right: SendRight) throws -> String {
        ThreadRunLoop.current.waitStrategy = .blocking
        let limit = Tuning.answerLimit
        var times: [Duration] = []
        for _ in 0..<300 {
            let start = MonotonicInstant.now
            _ = try right.request(MachMessage(id: 1), sendLimit: limit, replyLimit: limit)
            times.append(start.duration(to: .now))
        }
        return "about " + (times.sorted()[times.count / 2] / 2).shown
    }
}
