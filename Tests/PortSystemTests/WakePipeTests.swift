// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import PortSystem
import TestSupport
import Testing

@Suite("wake pipes", .census) struct WakePipeTests {
    /// The most that a pipe holds, unless said otherwise.
    private static let capacity = 65_536

    private func unread(_ pipe: WakePipe) -> Int {
        var count: CInt = 0
        #expect(ioctl(pipe.rawValue, UInt(FIONREAD), &count) == 0)
        return Int(count)
    }

    @Test("each byte ends a wait for edges once, and none is read")
    func edges() throws {
        let (pipe, writing) = try WakePipe.make()
        let waker = try #require(PipeWaker(writing))
        let set = try EpollSet()
        try set.add(pipe.rawValue, [.readable, .edgeTriggered], key: 7)
        for count in 1...100 {
            #expect(waker.wake())
            #expect(set.wait(until: Watchdog.deadline).map(\.key) == [7])
            #expect(set.wait(until: .distantPast).isEmpty)
            // Where a byte gives no edge while others lie unread, whoever watches drains.
            if !WakePipe.hasEdgeForEachByte { pipe.drain() } else { #expect(unread(pipe) == count) }
        }
    }

    @Test("a full pipe takes nothing more, and keeps nobody waiting, whatever flags its maker gives its own end")
    func full() throws {
        let (pipe, writing) = try WakePipe.make()
        let waker = try #require(PipeWaker(writing))
        #expect(fcntl(writing.rawValue, F_SETFL, 0) == 0)
        for _ in 0..<Self.capacity { #expect(waker.wake()) }
        #expect(!waker.wake())
        #expect(unread(pipe) == Self.capacity)
        pipe.drain()
        #expect(unread(pipe) == Self.capacity - 16_384)
        #expect(waker.wake())
    }

    @Test("a byte for a reader that has gone is no error, and no signal comes")
    func readerGone() throws {
        var made: (pipe: WakePipe, writing: SharedDescriptor)? = try WakePipe.make()
        let waker = try #require(made.flatMap { PipeWaker($0.writing) })
        made = nil
        #expect(waker.wake())
    }

    @Test("what is no pipe without a name is not opened")
    func others() throws {
        try withScratchDirectory(leaving: .anything) { scratch in
            let directory = SharedDescriptor(try sysOpen(scratch.path, .directory))
            let file = SharedDescriptor(try sysOpen("pipe:[1]", in: directory.rawValue, .creating))
            #expect(mkfifo(scratch.path("fifo"), 0o666) == 0)
            let fifo = SharedDescriptor(owning: open(scratch.path("fifo"), O_RDWR | O_NONBLOCK | O_CLOEXEC))
            let null = SharedDescriptor(owning: open("/dev/null", O_RDWR | O_CLOEXEC))
            let memory = try SharedMemory.make(size: 4096).file
            let sockets = try sysPacketSocketPair()
            for other in [directory, file, fifo, null, memory, sockets.0] {
                expectNoNewDescriptors { #expect(PipeWaker(other) == nil) }
            }
        }
    }

    @Test(
        "another user who gets the writing end can open it", .enabled(if: geteuid() == 0, "only root may change users"))
    func otherUser() throws {
        let setUser = unsafeBitCast(dlsym(nil, "setfsuid"), to: (@convention(c) (uid_t) -> CInt).self)
        let (pipe, writing) = try WakePipe.make()
        func isOpenedByAnother() throws -> Bool {
            let thread = runOnThread {
                _ = setUser(12_345)
                return PipeWaker(writing)?.wake() == true
            }
            return try thread.join()
        }
        #expect(try isOpenedByAnother())
        // It is the mode that lets it.
        #expect(fchmod(writing.rawValue, 0o600) == 0)
        #expect(try !isOpenedByAnother())
        #expect(unread(pipe) == 1)
    }

    #if PORT_FAULTS
    @Test(
        "without /proc, or a descriptor, a pipe is not opened", arguments: [SystemCall.readlink, .open],
        [ENOENT, EMFILE, EACCES])
    func refused(call: SystemCall, code: CInt) throws {
        let (_, writing) = try WakePipe.make()
        let (waker, hits) = SystemCallFaults.with([.init(call, .fail(code))]) { PipeWaker(writing) }
        #expect(waker == nil && hits == 1)
    }

    @Test("a kernel that does not say whether each byte gives an edge is asked again")
    func question() throws {
        // Whatever was asked before: the answer is kept, and then no call is made.
        let (_, calls) = SystemCallFaults.counting {
            _ = WakePipe.hasEdgeForEachByte
            _ = WakePipe.hasEdgeForEachByte
        }
        #expect(calls[.pipe] ?? 0 <= 1)
    }
    #endif
}
