// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import PortSystem
import RunLoopCore
import TestSupport
import Testing

#if PORT_FAULTS

/// Worker processes where the system refuses the calls that watch them. The refusals apply to the launcher's thread;
/// those of process descriptors are remembered by the process.
@Suite("Worker processes without process descriptors", .asyncWorkers) struct WorkerRefusalTests {
    /// What is refused, from when on.
    enum Refused: CaseIterable, Sendable {
        case descriptors, descriptorsByFilter
        /// The descriptor is there.
        case signals, waits

        var rules: [SystemCallFaults.Rule] {
            switch self {
            case .descriptors: [.init(.pidfd_open, .fail(ENOSYS), times: .max)]
            case .descriptorsByFilter: [.init(.pidfd_open, .fail(EPERM), times: .max)]
            case .signals: [.init(.pidfd_send_signal, .fail(ENOSYS), times: .max)]
            case .waits: [.init(.waitid, .fail(EINVAL), times: 1)]
            }
        }

        /// Runs a test, in which the calls are counted.
        func counting(_ body: () throws -> Void) throws -> [SystemCall: Int] {
            try Refusals.forgetting { try SystemCallFaults.counting(with: rules, body).calls }
        }
    }

    @Test("a worker checks in, answers, and leaves when asked", arguments: Refused.allCases)
    func checkIn(refused: Refused) async throws {
        try await withWorkers { scratch in
            let calls = try refused.counting {
                for _ in 0..<2 {
                    let worker = try PortWorker.launchProcess(scratch.worker("serve"))
                    let right = try worker.checkIn(within: longTimeout)
                    guard case .process(let id) = worker.identity else { return #expect(Bool(false)) }
                    #expect(try right.ask(2) == "\(id)")
                    #expect(worker.exit == nil)
                    #expect(try worker.shutDown(asking: leave, within: longTimeout) == .exited(status: 0))
                    #expect(kill(id, 0) == -1 && errno == ESRCH)
                }
            }
            let opened = refused == .descriptors || refused == .descriptorsByFilter ? 1 : 2
            #expect(calls[.pidfd_open] == opened, "a refused call is made once")
        }
    }

    @Test("a worker's end is reported on a loop, and how it ended", arguments: Refused.allCases)
    func notice(refused: Refused) async throws {
        try await withWorkers(leaving: .anything) { scratch in
            _ = try refused.counting {
                let exits = Recorder<String>()
                let loop = ThreadRunLoop.current
                let worker = try PortWorker.launchProcess(scratch.worker("serve"))
                let right = try worker.checkIn(within: longTimeout)
                try worker.notifyWhenExited { exit in
                    exits.append("\(exit)")
                    loop.stop()
                }
                try right.send(MachMessage(id: 5), within: longTimeout)
                loop.add(RunLoopSource {})
                loop.run(for: longTimeout)
                #expect(exits.elements == ["died of signal 9"])
            }
        }
    }

    @Test(
        "a worker that ends at once reports how, and one that is released is killed", arguments: Refused.allCases)
    func ends(refused: Refused) async throws {
        try await withWorkers(leaving: .anything) { scratch in
            _ = try refused.counting {
                let brief = try PortWorker.launchProcess(scratch.worker("exit", "3"))
                #expect(failure { _ = try brief.checkIn(within: longTimeout) }?.workerExit == .exited(status: 3))
                var worker: PortWorker? = try PortWorker.launchProcess(scratch.worker("stubborn"))
                _ = try worker?.checkIn(within: longTimeout)
                worker = nil  // the leak check finds no child
                let asked = try PortWorker.launchProcess(scratch.worker("serve"))
                _ = try asked.checkIn(within: longTimeout)
                #expect(try asked.shutDown(within: longTimeout) == .signalled(SIGTERM))
            }
        }
    }

    @Test(
        "a worker reaped by another waiter gets no signal, whichever process has its id", arguments: Refused.allCases
    )
    func stolen(refused: Refused) async throws {
        try await withWorkers(leaving: .anything) { scratch in
            let calls = try refused.counting {
                let worker = try PortWorker.launchProcess(scratch.worker("serve"))
                _ = try worker.checkIn(within: longTimeout)
                guard case .process(let id) = worker.identity else { return #expect(Bool(false)) }
                #expect(kill(id, SIGKILL) == 0)
                #expect(waitpid(id, nil, 0) == id)
                try worker.record.process?.signal(SIGKILL)
                #expect(worker.waitForExit(within: longTimeout) == .unknown)
            }
            #expect(calls[.kill] == nil)
        }
    }

    @Test("without a process descriptor and without a thread no worker is left behind")
    func noThread() async throws {
        try await withWorkers { scratch in
            let program = try scratch.worker("serve")
            Refusals.forgetting {
                let rules: [SystemCallFaults.Rule] = [
                    .init(.pidfd_open, .fail(ENOSYS), times: .max), .init(.clone, .fail(EAGAIN)),
                ]
                let error = SystemCallFaults.with(rules) { failure { _ = try PortWorker.launchProcess(program) } }
                    .result
                #expect(error?.code == .workerNotStarted)
                #expect(error?.systemError == SystemError(EAGAIN))
            }
        }
    }
}

#endif
