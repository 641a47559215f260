// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

@Suite("Worker processes", .workers) struct WorkerProcessTests {
    @Test("a worker process checks in with its own port, answers over it, and leaves when asked")
    func checkIn() async throws {
        try await withWorkers { scratch in
            let worker = try PortWorker.launchProcess(scratch.worker("serve"))
            let right = try worker.checkIn(within: longTimeout)
            #expect(worker.sendRight == right)
            guard case .process(let id) = worker.identity else { return #expect(Bool(false)) }
            #expect(try right.ask(2) == "\(id)")
            #expect(try right.ask(1, "abc") == "cba")
            #expect(worker.checkInMessage?.sender.processID == id)
            // It is retained as long as the worker lives, and is in no queue: its process's account is free of it.
            #expect(worker.checkInMessage?.envelope.isCharged == false)
            #expect(worker.exit == nil)
            #expect(try worker.shutDown(asking: leave, within: longTimeout) == .exited(status: 0))
            #expect(kill(id, 0) == -1 && errno == ESRCH)
        }
    }

    @Test(
        "the sender of a worker's message opens to the worker, which did not make its sockets, until it ends",
        .enabled("the system gives no descriptors of processes") { (try? SystemProbe.processSignal()) != nil })
    func opened() async throws {
        try await withWorkers { scratch in
            let worker = try PortWorker.launchProcess(scratch.worker("serve"))
            let right = try worker.checkIn(within: longTimeout)
            guard case .process(let id) = worker.identity else { return #expect(Bool(false)) }
            let sender = try #require(worker.checkInMessage?.sender)
            let process = try sender.openProcess()
            #expect(process.identity.processID == id && !process.hasEnded() && process.securityLabel == nil)
            // Required: it gets a signal.
            try #require(process.startTime != nil && process.startTime == sysProcessStart(id))
            #expect(try process.supplementaryGroups == PeerIdentity.current.openProcess().supplementaryGroups)
            // The worker's own port has a socket that the worker made.
            #expect(try right.owner().processID == id)
            try process.signal(SIGTERM)
            #expect(worker.waitForExit(within: longTimeout) == .signalled(SIGTERM))
            #expect(process.hasEnded())
            let error = portError { () throws(PortError) in _ = try sender.openProcess() }
            #expect(error?.code == .systemCallFailed && error?.systemError == SystemError(ESRCH))
            worker.port.localPort.receiveFromSockets()
            #expect(portError { () throws(PortError) in _ = try sender.openProcess() }?.code == .connectionEnded)
        }
    }

    @Test("a worker process is a sender to its launcher's port until it ends")
    func isSender() async throws {
        try await withWorkers { scratch in
            let worker = try PortWorker.launchProcess(scratch.worker("serve"))
            let right = try worker.checkIn(within: longTimeout)
            let notices = Counter("no-senders notices")
            let idle = RunLoopSource {}
            ThreadRunLoop.current.add(idle)
            do {
                let mine = worker.port.makeSendRight()
                try worker.port.notifyWhenNoSenders { notices.increment() }
                withExtendedLifetime(mine) {}
            }
            ThreadRunLoop.current.run(for: .zero)
            #expect(notices.value == 0)
            try right.send(leave, within: longTimeout)
            #expect(worker.waitForExit(within: longTimeout) == .exited(status: 0))
            worker.port.localPort.receiveFromSockets()
            ThreadRunLoop.current.run(for: .zero)
            #expect(notices.value == 1)
            idle.invalidate()
        }
    }

    @Test("nothing is left of a worker that checked in with a request and has ended, once it is released")
    func checkInByRequest() async throws {
        try await withWorkers { scratch in
            var worker: PortWorker? = try PortWorker.launchProcess(scratch.worker("asking"))
            _ = try worker?.checkIn(within: longTimeout)
            #expect(worker?.waitForExit(within: longTimeout) == .exited(status: 7))
            #expect(worker?.checkInMessage?.expectsReply == true)
            // The connection is found closed, and the port no longer has it.
            worker?.port.localPort.receiveFromSockets()
            #expect(worker?.port.localPort.connectionCount == 0)
            weak let localPort = worker?.port.localPort
            weak let record = worker?.record
            worker = nil
            #expect(localPort == nil && record == nil)
        }
    }

    @Test("waiting for the end of a worker whose launcher's port is full sleeps")
    func fullPort() async throws {
        try await withWorkers { scratch in
            let worker = try PortWorker.launchProcess(scratch.worker("serve"), queueLimit: 1)
            let right = try worker.checkIn(within: longTimeout)
            let directory = try PortDirectory.open(path: scratch.path("ports"))
            let remote = SendRight(
                try #require(try RightsTable.connect(to: worker.port.localPort.address(in: directory))))
            while try remote.trySend(MachMessage(bytes: [UInt8](repeating: 7, count: 3000))) {}
            worker.port.localPort.receiveFromSockets()
            let began = Gate("a wait for the worker")
            let waiter = runOnThread {
                let loop = ThreadRunLoop.current
                let before = loop.passCount
                loop.perform(in: [.workerWait]) { began.open() }
                try WorkerWait().wait(for: [worker], until: Watchdog.deadline, while: { worker.record.exit == nil })
                return loop.passCount - before
            }
            began.wait()
            for number in 0..<50 { #expect(try right.ask(1, "\(number)x").first == "x") }
            try right.send(leave, within: longTimeout)
            #expect(try waiter.join() < 20)
            withExtendedLifetime(remote) {}
        }
    }

    @Test("the wait for a check-in behind a full queue sleeps, and ends when there is room")
    func checkInBehindFullQueue() async throws {
        try await withWorkers { scratch in
            let worker = try PortWorker.launchProcess(scratch.worker("serve"), queueLimit: 1)
            let right = worker.port.makeSendRight()
            #expect(try right.trySend(MachMessage(id: 1)))
            let began = Gate("a wait for the check-in")
            let waiter = runOnThread {
                let loop = ThreadRunLoop.current
                let before = loop.passCount
                loop.perform(in: [.workerWait]) { began.open() }
                let right = try PortWorker.checkIn([worker], until: Watchdog.deadline, WorkerWait())[0]
                return (right, loop.passCount - before)
            }
            began.wait()
            // The worker's check-in is in the socket now or later; no other code can see it there.
            let other = try PortWorker.launchProcess(scratch.worker("serve"))
            for _ in 0..<50 { _ = try other.checkIn(within: longTimeout).ask(1, "abc") }
            #expect(try worker.port.tryReceive()?.id == 1)
            let (found, passCount) = try waiter.join()
            #expect(try found.ask(1, "abc") == "cba")
            #expect(passCount < 20)
            try worker.shutDown(asking: leave, within: longTimeout)
            try other.shutDown(asking: leave, within: longTimeout)
        }
    }

    #if PORT_FAULTS
    @Test("the parent needs no name; where it can have no socket, its worker checks in, and passes on a dead name")
    func noNames() async throws {
        try await withWorkers { scratch in
            let (worker, hits) = try SystemCallFaults.with([.init(.listen, .fail(EACCES))]) {
                try PortWorker.launchProcess(scratch.worker("passing"))
            }
            #expect(hits == 1)
            let right = try worker.checkIn(within: longTimeout)
            let files = try sysList(scratch.path("swift-ports/sockets"))
            #expect(files.count { !$0.hasSuffix(".lock") } == 1, "the worker's own socket alone: \(files)")
            #expect(worker.port.localPort.state.withLock { $0.coldState.address } == nil)
            let other = try PortWorker.launchProcess(scratch.worker("serve"))
            let request = MachMessage(id: 98, components: [.right(try other.checkIn(within: longTimeout))])
            let reply = try right.request(request, sendLimit: longTimeout, replyLimit: longTimeout)
            #expect(reply.text == "error deadName")
            for worker in [worker, other] { try worker.shutDown(asking: leave, within: longTimeout) }
        }
    }
    #endif

    @Test("the child has standard input, output and error, the bootstrap descriptor, and no other")
    func descriptors() async throws {
        try await withWorkers { scratch in
            // One that is not close-on-exec, as a program's other libraries may open it.
            let leak = dup(STDERR_FILENO)
            defer { close(leak) }
            let worker = try PortWorker.launchProcess(scratch.worker("facts"))
            _ = try worker.checkIn(within: longTimeout)
            let facts = try #require(worker.checkInMessage?.text).split(separator: "\n")
            #expect(facts.first == "descriptors 0 1 2 3")
            #expect(facts.contains("closing 3"), "what the child starts gets the bootstrap descriptor: \(facts)")
            try worker.shutDown(asking: leave, within: longTimeout)
        }
    }

    @Test("the child has the environment and the directory that it was given, and no blocked or ignored signal")
    func surroundings() async throws {
        try await withWorkers { scratch in
            var program = try scratch.worker("facts")
            program.environment["PORT_TEST_VARIABLE"] = "a = b"
            program.environment["HOME"] = .some(nil)
            program.directory = "/"
            var mask = sigset_t()
            var old = sigset_t()
            sigfillset(&mask)
            pthread_sigmask(SIG_SETMASK, &mask, &old)
            defer { pthread_sigmask(SIG_SETMASK, &old, nil) }
            let before = signal(SIGUSR2, SIG_IGN)
            defer { _ = signal(SIGUSR2, before) }
            let worker = try PortWorker.launchProcess(program)
            _ = try worker.checkIn(within: longTimeout)
            let facts = try #require(worker.checkInMessage?.text).split(separator: "\n").map(String.init)
            #expect(facts.contains("variable a = b"))
            #expect(facts.contains("home none"))
            #expect(facts.contains("directory /"))
            #expect(facts.contains("SigBlk:0000000000000000"), "\(facts)")
            #expect(facts.contains("SigIgn:0000000000000000"), "\(facts)")
            try worker.shutDown(asking: leave, within: longTimeout)
        }
    }

    @Test("the child's standard output goes where it was directed")
    func standardOutput() async throws {
        try await withWorkers { scratch in
            var ends: [CInt] = [-1, -1]
            try #require(pipe(&ends) == 0)
            let reading = SharedDescriptor(owning: ends[0])
            let writing = SharedDescriptor(owning: ends[1])
            var program = try scratch.worker("serve")
            program.standardOutput = writing
            let worker = try PortWorker.launchProcess(program)
            try worker.checkIn(within: longTimeout).send(MachMessage(id: 4, text: "hello"), within: longTimeout)
            #expect(try sysRead(reading.rawValue, capacity: 100) == Array("note hello\n".utf8))
            try worker.shutDown(asking: leave, within: longTimeout)
        }
    }

    @Test("a worker's end is reported once on each loop that asked for it")
    func endNotice() async throws {
        try await withWorkers(leaving: .anything) { scratch in
            let notices = Recorder<String>()
            let loop = ThreadRunLoop.current
            let worker = try PortWorker.launchProcess(scratch.worker("serve"))
            let right = try worker.checkIn(within: longTimeout)
            try worker.notifyWhenExited { notices.append("one \($0)") }
            try worker.notifyWhenExited { exit in
                #expect(loop.isCurrent)
                notices.append("two \(exit)")
                loop.stop()
            }
            try right.send(MachMessage(id: 5), within: longTimeout)
            loop.add(RunLoopSource {})
            loop.run(for: longTimeout)
            #expect(worker.exit == .signalled(SIGKILL))
            try worker.notifyWhenExited { _ in
                notices.append("three")
                loop.stop()
            }
            loop.run(for: longTimeout)
            #expect(notices.elements == ["one died of signal 9", "two died of signal 9", "three"])
        }
    }

    @Test("a child whose launcher gave it up finds its right dead, and exits")
    func orphan() async throws {
        try await withWorkers { scratch in
            let worker = try PortWorker.launchProcess(scratch.worker("serve"))
            _ = try worker.checkIn(within: longTimeout)
            worker.port.invalidate()
            #expect(worker.waitForExit(within: longTimeout) == .exited(status: 0))
        }
    }

    @Test("a worker that is released is killed and waited for")
    func release() async throws {
        try await withWorkers(leaving: .anything) { scratch in
            var worker: PortWorker? = try PortWorker.launchProcess(scratch.worker("stubborn"))
            _ = try worker?.checkIn(within: longTimeout)
            worker = nil  // the leak check finds no child
        }
    }

    @Test("a worker that ignores its stop request and SIGTERM is killed")
    func stubborn() async throws {
        try await withWorkers(leaving: .anything) { scratch in
            // On a busy machine it may need longer to exit than the limit: the next limit is longer.
            var (limit, hasGone) = (Duration.milliseconds(50), false)
            while !hasGone, limit < longTimeout {
                let worker = try PortWorker.launchProcess(scratch.worker("stubborn"))
                _ = try worker.checkIn(within: longTimeout)
                do throws(PortError) {
                    #expect(try worker.shutDown(asking: leave, within: limit) == .signalled(SIGKILL))
                    hasGone = true
                } catch {
                    #expect(error.code == .workerStillRunning)
                    #expect(worker.waitForExit(within: longTimeout) == .signalled(SIGKILL))
                    limit *= 4
                }
            }
            #expect(hasGone)
        }
    }

    @Test("a worker that is not asked ends with SIGTERM")
    func terminated() async throws {
        try await withWorkers(leaving: .anything) { scratch in
            let worker = try PortWorker.launchProcess(scratch.worker("serve"))
            _ = try worker.checkIn(within: longTimeout)
            #expect(try worker.shutDown(within: longTimeout) == .signalled(SIGTERM))
            #expect(try worker.shutDown(within: longTimeout) == .signalled(SIGTERM))
        }
    }

    @Test("what a worker says before it leaves, when it is asked to, does not keep it")
    func lastWords() async throws {
        try await withWorkers { scratch in
            let worker = try PortWorker.launchProcess(scratch.worker("lastwords", "2000"), queueLimit: 4000)
            _ = try worker.checkIn(within: longTimeout)
            #expect(try worker.shutDown(asking: leave, within: longTimeout) == .exited(status: 0))
        }
    }

    @Test("this process has no bootstrap port")
    func none() throws {
        #expect(try SendRight.bootstrap() == nil)
    }
}
