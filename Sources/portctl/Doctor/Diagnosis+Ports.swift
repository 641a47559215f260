// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer
import PortCLibrary

extension Diagnosis {
    /// The limits of the system, and how much is left.
    static let limits = [
        Probe(
            subject: "descriptors",
            cost: "A service has two and one for each client; beyond the limit it refuses clients.",
            remedy: "Raise LimitNOFILE= of the unit, or ulimit -n."
        ) {
            let limits = sysDescriptorLimits()
            let text = "\(limits.soft), which this process may raise to \(limits.hard)"
            return limits.soft < 1024 ? .low(text) : .fact(text)
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
            return isLow ? .low(text) : .fact(text)
        },
        Probe(
            subject: "vm.overcommit_memory",
            cost:
                "The kernel gives no more memory than it has: each thread's stack and each ring counts as if all of it were used.",
            remedy: "Set vm.overcommit_memory to 0 or 1, or leave room for 8 MiB for each thread."
        ) {
            guard let number = sysNumber(named: "vm.overcommit_memory") else { return .fact("unknown") }
            return number == 2 ? .low("2") : .fact("\(number)")
        },
    ]

    /// Where the directory of names is, and which rule determines that.
    var place: Probe {
        Probe(
            subject: "directory", cost: "No port can have a name, or be sent to another process.",
            remedy: "Make it mode 0700 and this user's own, or name another one by SWIFT_PORT_DIRECTORY."
        ) {
            guard let directory else {
                let user = try PortDirectory.open(path: PortDirectory.userPath, mayBeShared: true)
                return .works("\(user.path), \(Self.rule(for: user.path))\(Self.sharing(of: user))")
            }
            return .works("\(directory), by --directory\(Self.sharing(of: try Self.existing(directory)))")
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
        if path == variable(PortDirectory.variable) { return "by \(PortDirectory.variable)" }
        for name in ["XDG_RUNTIME_DIR", "RUNTIME_DIRECTORY", "TMPDIR"] {
            guard let first = variable(name)?.split(separator: ":").first else { continue }
            if path.hasPrefix("\(first)/swift-ports") { return "by \(name)" }
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
            let path = directory ?? PortDirectory.userPath
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
                return .fact("looked up; this user registers none there unless the file rules says so")
            }
            defer { server.unregister(name) }
            guard try server.lookUp(name) == own else { throw CheckFailure(name: "a name leads elsewhere") }
            return .works("registered, found and freed")
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
            return .works(try wakeUp(of: port.makeSendRight()))
        },
        Probe(
            subject: "wake-up of a process", cost: "No program can launch a worker.",
            remedy:
                "What was found says why; RLIMIT_NPROC, TasksMax= and pids.max bound how many processes there may be."
        ) {
            // The error appears here, so the worker's own output is discarded.
            let null = SharedDescriptor(try sysOpen("/dev/null", .reading))
            let worker = try Invocation.launchWorker(["PORT_WAIT": "blocking"], standardError: null)
            let other = try worker.checkIn(within: .seconds(10))
            defer { _ = try? worker.shutDown() }
            return .works(try wakeUp(of: other))
        },
    ]

    /// The median of half the time of a request and its reply: each of the two wakes one side.
    private static func wakeUp(of right: SendRight) throws -> String {
        ThreadRunLoop.current.waitStrategy = .blocking
        let limit = Duration.seconds(10)
        var times: [Duration] = []
        for _ in 0..<300 {
            let start = MonotonicInstant.now
            _ = try right.request(MachMessage(id: 1), sendLimit: limit, replyLimit: limit)
            times.append(start.duration(to: .now))
        }
        return "about " + HumanDuration.text(times.sorted()[times.count / 2] / 2)
    }
}
