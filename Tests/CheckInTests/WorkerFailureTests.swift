// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

@Suite("Worker processes that fail", .workers) struct WorkerFailureTests {
    @Test(
        "a worker that ends without checking in is reported with how it ended, and is reaped",
        arguments: [("exit", "0"), ("exit", "3"), ("crash", "")])
    func early(kind: String, argument: String) async throws {
        try await withWorkers { scratch in
            let worker = try PortWorker.launchProcess(scratch.worker(kind, argument))
            let error = try #require(failure { _ = try worker.checkIn(within: longTimeout) })
            #expect(error.code == .workerExited)
            #expect(error.worker == worker.identity)
            let exit = kind == "crash" ? WorkerExit.signalled(SIGUSR1) : .exited(status: try #require(Int32(argument)))
            #expect(error.workerExit == exit)
            #expect(error.description.contains("(worker \(worker.identity), \(exit)"))
        }
    }

    @Test("a worker that never checks in is reported within the limit, and can be shut down")
    func silent() async throws {
        try await withWorkers(leaving: .anything) { scratch in
            let worker = try PortWorker.launchProcess(scratch.worker("silent"))
            let error = failure { _ = try worker.checkIn(within: .milliseconds(20)) }
            #expect(error?.code == .checkInTimedOut)
            #expect(error?.worker == worker.identity)
            #expect(worker.exit == nil)
            _ = try worker.shutDown(asking: leave, within: longTimeout)
        }
    }

    @Test("a worker that checks in and exits at once has checked in")
    func brief() async throws {
        try await withWorkers(leaving: .anything) { scratch in
            let worker = try PortWorker.launchProcess(scratch.worker("brief"))
            #expect(worker.waitForExit(within: longTimeout) == .exited(status: 7))
            _ = try worker.checkIn(within: longTimeout)
            #expect(worker.sendRight?.isDead == true)
        }
    }

    @Test("a worker that says much before it checks in, and exits at once, has checked in")
    func chatty() async throws {
        try await withWorkers(leaving: .anything) { scratch in
            let worker = try PortWorker.launchProcess(scratch.worker("chatty", "80"), queueLimit: 200)
            #expect(worker.waitForExit(within: longTimeout) == .exited(status: 7))
            _ = try worker.checkIn(within: longTimeout)
            #expect(worker.sendRight?.isDead == true)
            #expect(worker.port.queueCount == 80)
        }
    }

    @Test(
        "a program that cannot be started is reported with the kernel's reason",
        arguments: [ENOENT, EACCES, ENOEXEC, EINVAL])
    func cannotStart(reason: CInt) async throws {
        try await withWorkers { scratch in
            let text = try scratch.write("\u{1}\u{2} no program", to: "text")
            var program = WorkerProgram(scratch.path("nowhere"))
            switch reason {
            case EACCES: program.path = text
            case ENOEXEC:
                program.path = text
                try #require(chmod(text, 0o700) == 0)
            case EINVAL: program.arguments = ["a\0b"]
            default: break
            }
            let error = failure { _ = try PortWorker.launchProcess(program) }
            #expect(error?.code == .workerNotStarted)
            #expect(error?.systemError == SystemError(reason))
            #expect(error?.description.contains(program.path) == true)
        }
    }

    @Test("a bad name in the environment, or a bad directory, is reported")
    func badSurroundings() async throws {
        try await withWorkers { scratch in
            for name in ["", "A=B", "A\0"] {
                var program = try scratch.worker("serve")
                program.environment[name] = "x"
                #expect(failure { _ = try PortWorker.launchProcess(program) }?.systemError == SystemError(EINVAL))
            }
            var program = try scratch.worker("serve")
            program.directory = scratch.path("nowhere")
            #expect(failure { _ = try PortWorker.launchProcess(program) }?.systemError == SystemError(ENOENT))
            program.directory = "/\0"
            #expect(failure { _ = try PortWorker.launchProcess(program) }?.systemError == SystemError(EINVAL))
        }
    }

    #if PORT_FAULTS
    @Test(
        "a launch that the kernel refuses at any step leaves neither a process nor a descriptor",
        arguments: [
            (SystemCall.epoll_create, EMFILE), (.socketpair, EMFILE), (.fstat, ENOMEM), (.dup, EMFILE),
            (.vfork, EAGAIN), (.pidfd_open, EMFILE), (.epoll_ctl, ENOSPC),
        ])
    func refused(call: SystemCall, code: CInt) async throws {
        try await withWorkers(leaving: .anything) { scratch in
            let program = try scratch.worker("silent")
            // The listener is added to two sets first: without it the worker cannot pass its right on, no more.
            let rule = SystemCallFaults.Rule(call, .fail(code), skipping: call == .epoll_ctl ? 2 : 0)
            let faults = SystemCallFaults.with([rule]) { failure { _ = try PortWorker.launchProcess(program) } }
            #expect(faults.hits == 1)
            #expect(faults.result?.code == .workerNotStarted)
            #expect(faults.result?.systemError == SystemError(code))
        }
    }

    @Test("a process that cannot be served is killed through its descriptor, not by its number")
    func killedByDescriptor() async throws {
        try await withWorkers(leaving: .anything) { scratch in
            let program = try scratch.worker("silent")
            // A call that is interrupted is made again.
            let faults = SystemCallFaults.with([
                .init(.epoll_ctl, .fail(ENOSPC), skipping: 2), .init(.pidfd_send_signal, .fail(EINTR)),
            ]) { failure { _ = try PortWorker.launchProcess(program) } }
            #expect(faults.hits == 2)
            #expect(faults.result?.systemError == SystemError(ENOSPC))
        }
    }

    @Test("the release of a worker that may not be killed does not wait for its end")
    func immortal() async throws {
        try await onNewThread {
            var worker: PortWorker? = try PortWorker.launchProcess(WorkerProgram("/bin/sleep", ["86400"]))
            guard case .process(let id) = worker?.identity else { return #expect(Bool(false)) }
            // By its descriptor, and by its number: a filter refuses signals by the first with the same number.
            let faults = Refusals.forgetting {
                SystemCallFaults.with([.init(.pidfd_send_signal, .fail(EPERM)), .init(.kill, .fail(EPERM))]) {
                    worker = nil
                }
            }
            #expect(faults.hits == 2)
            #expect(waitpid(id, nil, WNOHANG) == 0, "it runs")
            #expect(kill(id, SIGKILL) == 0)
            #expect(waitpid(id, nil, 0) == id)
        }
    }

    @Test("a worker that has ended wakes those that wait for another one no more")
    func endedWhileOthersAreAwaited() async throws {
        try await withWorkers(leaving: .anything) { scratch in
            let brief = try PortWorker.launchProcess(scratch.worker("brief"))
            let silent = try PortWorker.launchProcess(scratch.worker("silent"))
            _ = try brief.checkIn(within: longTimeout)
            #expect(brief.waitForExit(within: longTimeout) == .exited(status: 7))
            let (error, calls) = SystemCallFaults.counting {
                failure {
                    _ = try PortWorker.checkIn([brief, silent], until: .after(.milliseconds(50)), WorkerWait())
                }
            }
            #expect(error?.worker == silent.identity)
            // Some for what had come before; a descriptor that stays readable would wake the loop thousands of times.
            #expect(calls[.epoll_wait, default: 0] < 200, "\(calls)")
            _ = try silent.shutDown(within: longTimeout)
        }
    }

    @Test("a thread that cannot be created is reported")
    func noThread() async throws {
        try await onNewThread {
            let faults = SystemCallFaults.with([.init(.clone, .fail(EAGAIN))]) {
                failure { _ = try PortWorker.launchThread(reversingBody) }
            }
            #expect(faults.result?.code == .workerNotStarted)
            #expect(faults.result?.systemError == SystemError(EAGAIN))
        }
    }

    @Test("a wait that the kernel refuses is reported, and can be repeated")
    func refusedWait() async throws {
        try await withWorkers { scratch in
            let worker = try PortWorker.launchProcess(scratch.worker("serve"))
            let faults = SystemCallFaults.with([.init(.epoll_create, .fail(EMFILE), times: 10)]) {
                failure { _ = try worker.checkIn(within: longTimeout) }
            }
            // A worker that checked in before the wait needs no descriptor.
            #expect(faults.result == nil || faults.result?.code == .descriptorLimit)
            _ = try worker.checkIn(within: longTimeout)
            try worker.shutDown(asking: leave, within: longTimeout)
        }
    }
    #endif

    @Test("a process that something else has waited for ended, how is not known")
    func stolen() async throws {
        try await withWorkers { scratch in
            let worker = try PortWorker.launchProcess(scratch.worker("exit", "5"))
            guard case .process(let id) = worker.identity else { return #expect(Bool(false)) }
            var status: CInt = 0
            #expect(waitpid(id, &status, 0) == id)
            #expect(worker.waitForExit(within: longTimeout) == .unknown)
            #expect(failure { _ = try worker.checkIn(within: longTimeout) }?.workerExit == .unknown)
        }
    }

    @Test("a program that ignores SIGCHLD gets workers, and learns that they ended")
    func ignoredChildSignal() async throws {
        await Pools.start()
        let program: String = try builtProduct("port-test-peer")
        await #expect(processExitsWith: .success) { [program = program as String] in
            signal(SIGCHLD, SIG_IGN)
            for _ in 0..<20 {
                let worker = try PortWorker.launchProcess(WorkerProgram(program, ["worker", "exit", "3"]))
                let error = failure { _ = try worker.checkIn(within: longTimeout) }
                try #require(error?.workerExit == .unknown)
            }
        }
    }

    @Test("workers that are killed at any moment are reported as killed or as checked in, and are reaped", .seeded)
    func killedAnywhen() async throws {
        try await withWorkers(leaving: .anything) { scratch in
            var generator = Seed.generator()
            for _ in 0..<12 {
                let worker = try PortWorker.launchProcess(scratch.worker("serve"))
                guard case .process(let id) = worker.identity else { return #expect(Bool(false)) }
                let pause = timespec(tv_sec: 0, tv_nsec: Int.random(in: 0...20_000_000, using: &generator))
                let killer = runOnThread {
                    var left = pause
                    nanosleep(&left, nil)
                    kill(id, SIGKILL)
                }
                let error = failure { _ = try worker.checkIn(within: longTimeout) }
                try killer.join()
                if let error { #expect(error.workerExit == .signalled(SIGKILL)) }
                #expect(worker.waitForExit(within: longTimeout) == .signalled(SIGKILL))
            }
        }
    }
}
