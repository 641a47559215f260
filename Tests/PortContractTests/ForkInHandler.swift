// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
@testable import RunLoopCore
import Synchronization
import TestSupport
import Testing

/// A request during which its thread calls a handler that forks, while another thread holds the locks that the end of
/// the handler and of the request would acquire.
struct ForkInHandler: Sendable {
    let served: MachPort
    let asked: MachPort
    let right: SendRight
    let group = RequestGroup()
    let mayLock = Gate("the handler")
    let locked = Gate("the locks")
    let mayUnlock = Gate("the fork")
    let child = Box<pid_t>()

    init(_ bench: Bench) throws {
        served = try bench.port()
        asked = try bench.port()
        right = try bench.right(to: asked)
    }

    func run() throws {
        let loop = ThreadRunLoop.current
        let holder = runOnThread { holdLocks(of: loop) }
        let answerer = runOnThread {
            mayUnlock.wait()
            try asked.next().reply(MachMessage(id: 5))
        }
        served.setHandler { _, _ in
            mayLock.open()
            locked.wait()
            let forked = try? forkInPlace()
            child.value.withLock { $0 = forked }
            if forked != 0 { mayUnlock.open() }
        }
        try served.schedule(on: loop, in: .portReply)
        try served.makeSendRight().send(MachMessage())
        let outcome = Result { () throws(PortError) in
            try right.request(
                MachMessage(), sendLimit: longTimeout, replyLimit: longTimeout, mode: .portReply, in: group)
        }
        let forked = try #require(child.value.withLock { $0 })
        if forked == 0 {
            let failure = portError { () throws(PortError) in _ = try outcome.get() }
            _exit(failure?.code == .forkedProcess ? 0 : 1)
        }
        #expect(exitStatus(of: forked) == 0)
        #expect(try outcome.get().id == 5)
        try holder.join()
        try answerer.join()
        served.invalidate()  // its handler retains it
    }

    private func holdLocks(of loop: ThreadRunLoop) {
        mayLock.wait()
        loop.waitNote.withLock { _ in
            group.slots.withLock { _ in
                served.state.withLock { _ in
                    served.localPort.state.withLock { _ in holdConnection() }
                }
            }
        }
    }

    private func holdConnection() {
        func hold() {
            locked.open()
            mayUnlock.wait()
        }
        guard let connection = (right.destination as? RemotePort)?.connection else { return hold() }
        connection.state.withLock { _ in hold() }
    }
}
