// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import TestSupport

/// One use of one system call, ready to be made: all that it needs was prepared without it.
struct Exercise {
    enum Outcome: Hashable {
        case done, notNow
    }

    private let body: () throws -> Outcome

    init(_ call: SystemCall, in scratch: ScratchDirectory) throws {
        body =
            switch call {
            case .accept, .bind, .connect, .getsockname, .getsockopt, .listen, .recvmsg, .sendmsg, .setsockopt,
                .shutdown, .socket,
                .socketpair:
                try Exercise.socketCall(call, scratch)
            case .fchmod, .fchown, .fcntl, .flock, .fstat, .link, .mkdir, .open, .readdir, .readlink, .rename, .symlink,
                .sync_file_range, .unlink:
                try Exercise.fileCall(call, scratch)
            case .inotify_add_watch, .inotify_init, .inotify_rm_watch: try Exercise.watchCall(call, scratch)
            case .clone: { try Exercise.done(sysStartThread {}.join()) }
            case .close_range: { try Exercise.done(SystemProbe.closeRange()) }
            case .sigtimedwait: Exercise.consumeSignal
            case .futex: { Exercise.done(Futex().signal()) }
            case .sched_yield: { Exercise.done(sysYield()) }
            case .dup, .epoll_create, .epoll_ctl, .epoll_wait, .eventfd, .kcmp, .pipe, .poll, .read, .statx, .write:
                try Exercise.descriptorCall(call)
            case .fallocate, .ftruncate, .memfd_create, .mmap:
                { try SharedMemory.make(size: 4096).memory.size == 4096 ? .done : .notNow }
            case .kill, .pidfd_open, .pidfd_send_signal, .vfork, .waitid: try Exercise.processCall(call)
            }
    }

    func run() throws -> Outcome {
        try body()
    }

    private static func socketCall(_ call: SystemCall, _ scratch: ScratchDirectory) throws -> () throws -> Outcome {
        let path = scratch.path("socket")
        let listener = SharedDescriptor(try sysPacketSocket())
        if call != .bind { try sysBind(listener.rawValue, path: path) }
        if call != .bind && call != .listen { try sysListen(listener.rawValue, backlog: 16) }
        let pair = try sysPacketSocketPair()
        let client = SharedDescriptor(try sysPacketSocket())
        switch call {
        case .accept:
            _ = try sysConnect(client.rawValue, path: path)
            return {
                _ = client
                switch try sysAccept(listener.rawValue) {
                case .some: return .done
                case .none: return .notNow
                }
            }
        case .bind: return { try done(sysBind(listener.rawValue, path: path)) }
        case .connect:
            return {
                try withExtendedLifetime(listener) { try sysConnect(client.rawValue, path: path) ? .done : .notNow }
            }
        case .getsockopt: return { try sysPeerCredentials(pair.0.rawValue).process == getpid() ? .done : .notNow }
        case .getsockname: return { try sysSocketPath(listener.rawValue) == path ? .done : .notNow }
        case .listen: return { try done(sysListen(listener.rawValue, backlog: 1)) }
        case .recvmsg:
            _ = try send(pair.0, [1])
            return { try receive(pair.1) == .packet([1], descriptorCount: 0) ? .done : .notNow }
        case .sendmsg: return { try send(pair.0, [1]) == .sent && pair.1.rawValue >= 0 ? .done : .notNow }
        case .setsockopt: return { try done(sysReceivePlainly(listener.rawValue)) }
        case .shutdown:
            return {
                sysShutDown(pair.0.rawValue)
                return try receive(pair.1) == .peerClosed ? .done : .notNow
            }
        case .socket: return { try sysPacketSocket().raw >= 0 ? .done : .notNow }
        default: return { try done(sysPacketSocketPair()) }
        }
    }

    private static func fileCall(_ call: SystemCall, _ scratch: ScratchDirectory) throws -> () throws -> Outcome {
        try scratch.write("text", to: "file")
        let directory = SharedDescriptor(try sysOpen(scratch.path, .directory))
        let file = SharedDescriptor(try sysOpen("file", in: directory.rawValue, .creating))
        switch call {
        case .fchmod: return { try done(sysShare(file.rawValue, with: sysStatus(file.rawValue).group, 0o640)) }
        case .fchown: return { try done(sysChangeGroup(file.rawValue, to: sysStatus(file.rawValue).group)) }
        case .fcntl: return { try sysLock(file.rawValue, .openFile) ? .done : .notNow }
        case .flock: return { try sysLock(file.rawValue, .wholeFile) ? .done : .notNow }
        case .fstat: return { try sysStatus(file.rawValue).isRegular ? .done : .notNow }
        case .link: return { try done(sysLink("file", to: "other", in: directory.rawValue)) }
        case .mkdir: return { try sysMakeDirectory(scratch.path("inner")) ? .done : .notNow }
        case .open: return { try sysOpen("file", in: directory.rawValue, .reading).raw >= 0 ? .done : .notNow }
        case .readdir: return { try sysList(scratch.path) == ["file"] ? .done : .notNow }
        case .readlink:
            symlink("file", scratch.path("link"))
            return { try sysReadLink(scratch.path("link")) == "file" ? .done : .notNow }
        case .sync_file_range: return { try sysMayBePipe(file.rawValue) ? .notNow : .done }
        case .symlink: return { try done(sysMakeLink("new", to: "file", in: directory.rawValue)) }
        case .rename: return { try done(sysRename("file", to: "other", in: directory.rawValue)) }
        default: return { try done(sysUnlink("file", in: directory.rawValue)) }
        }
    }

    private static func watchCall(_ call: SystemCall, _ scratch: ScratchDirectory) throws -> () throws -> Outcome {
        {
            let kernel = try DirectoryWatch()
            let watch = try kernel.add(scratch.path, .created)
            if call == .inotify_rm_watch { kernel.remove(watch) }
            try scratch.write("", to: "new")
            let seen = try kernel.reports().filter { $0.events == .created }
            unlink(scratch.path("new"))
            return seen.isEmpty == (call == .inotify_rm_watch) ? .done : .notNow
        }
    }

    private static func descriptorCall(_ call: SystemCall) throws -> () throws -> Outcome {
        let event = SharedDescriptor(try EventDescriptor(.eventfd).duplicate())
        let one: [UInt8] = [1, 0, 0, 0, 0, 0, 0, 0]
        if call != .write { _ = try sysWrite(event.rawValue, one) }
        switch call {
        case .dup: return { try sysDuplicate(event.rawValue).raw >= 0 ? .done : .notNow }
        case .epoll_create: return { try EpollSet().raw >= 0 ? .done : .notNow }
        case .epoll_ctl, .epoll_wait:
            return {
                let set = try EpollSet()
                try set.add(event.rawValue, .readable, key: 1)
                return set.wait(until: .distantFuture).map(\.key) == [1] ? .done : .notNow
            }
        case .kcmp: return { try sysAreSame(event.rawValue, event.rawValue) ? .done : .notNow }
        case .statx: return { try sysPipeFacts(event.rawValue).isPipe ? .notNow : .done }
        case .eventfd: return { try EventDescriptor(.eventfd).raw >= 0 ? .done : .notNow }
        case .pipe: return { try EventDescriptor(.pipe).raw >= 0 ? .done : .notNow }
        case .poll:
            return { try sysPoll(event.rawValue, .readable, until: .distantFuture) == .readable ? .done : .notNow }
        case .read: return { try sysRead(event.rawValue, capacity: 8) == one ? .done : .notNow }
        default: return { try sysWrite(event.rawValue, one) == 8 ? .done : .notNow }
        }
    }

    /// SIGWINCH is ignored when no thread accepts it.
    private static func consumeSignal() throws -> Outcome {
        var (set, old) = (sigset_t(), sigset_t())
        sigemptyset(&set)
        sigaddset(&set, SIGWINCH)
        pthread_sigmask(SIG_BLOCK, &set, &old)
        defer { pthread_sigmask(SIG_SETMASK, &old, nil) }
        pthread_kill(pthread_self(), SIGWINCH)
        return try sysConsumeSignal(SIGWINCH) ? .done : .notNow
    }

    private static func processCall(_ call: SystemCall) throws -> () throws -> Outcome {
        if call == .vfork { return { try Child().id > 0 ? .done : .notNow } }
        let child = try Child()
        let process = try child.watched()
        switch call {
        case .pidfd_open: return { try child.watched().rawValue >= 0 ? .done : .notNow }
        case .kill: return { try withExtendedLifetime(child) { try done(sysKill(child.id, 0)) } }
        case .pidfd_send_signal: return { try withExtendedLifetime(child) { try done(process.signal(0)) } }
        default:
            return {
                _ = try sysPoll(process.rawValue, .readable, until: .distantFuture)
                guard try process.reap() == .exited(0) else { return .notNow }
                child.isReaped = true
                return .done
            }
        }
    }

    private static func done<Value>(_ value: Value) -> Outcome { .done }
}

/// A child process that ends at once, and is waited for when this object goes.
private final class Child {
    let id: pid_t
    var isReaped = false

    init() throws {
        id = try sysSpawn("/bin/true", arguments: [], environment: [:], in: nil, descriptors: [nil, nil, nil])
    }

    deinit {
        if !isReaped { sysKillAndReap(id) }
    }

    func watched() throws -> LaunchedProcess {
        guard let process = try LaunchedProcess.watching(child: id) else { throw SystemError(ECHILD) }
        return process
    }
}

extension EventDescriptor {
    /// Its descriptor, for a test that needs only that.
    fileprivate consuming func duplicate() throws -> FileDescriptor {
        try sysDuplicate(raw)
    }
}
