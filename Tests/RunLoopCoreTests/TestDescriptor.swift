// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import TestSupport
import Testing

/// Something that can be waited for, and how to make it ready once more, and once less.
struct TestDescriptor: Sendable {
    /// The kinds of descriptors that the tests watch.
    enum Kind: CaseIterable, Sendable {
        case pipe, fifo, eventfd, socketPair, epoll
    }

    private final class Eventfd: Sendable {
        let event: EventDescriptor

        init() throws { event = try EventDescriptor(.eventfd) }
    }

    private final class Epoll: Sendable {
        let set: EpollSet

        init() throws { set = try EpollSet() }
    }

    let raw: CInt
    let put: @Sendable () throws -> Void
    let take: @Sendable () throws -> Void

    private init(raw: CInt, put: @escaping @Sendable () throws -> Void, take: @escaping @Sendable () throws -> Void) {
        self.raw = raw
        self.put = put
        self.take = take
    }

    init(_ kind: Kind) throws {
        switch kind {
        case .pipe:
            let pipe = try TestPipe(isBlocking: false)
            self.init(pipe.reading, pipe.writing)
        case .fifo:
            let end = try withScratchDirectory { directory in
                guard mkfifo(directory.path("fifo"), 0o600) == 0 else { throw SystemError(errno) }
                return SharedDescriptor(owning: open(directory.path("fifo"), O_RDWR | O_NONBLOCK))
            }
            self.init(end, end)
        case .eventfd:
            let eventfd = try Eventfd()
            self.init(raw: eventfd.event.raw, put: { eventfd.event.signal() }, take: { eventfd.event.clear() })
        case .socketPair:
            var ends: [CInt] = [-1, -1]
            guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0 else { throw SystemError(errno) }
            self.init(SharedDescriptor(owning: ends[0]), SharedDescriptor(owning: ends[1]))
        case .epoll:
            let pipe = try TestPipe(isBlocking: false)
            let epoll = try Epoll()
            try epoll.set.add(pipe.reading.rawValue, .readable, key: 1)
            self.init(
                raw: epoll.set.raw, put: { try pipe.put() },
                take: { _ = try withExtendedLifetime(epoll) { try pipe.take() } })
        }
    }

    private init(_ reading: SharedDescriptor, _ writing: SharedDescriptor) {
        self.init(
            raw: reading.rawValue, put: { _ = try sysWrite(writing.rawValue, [1]) },
            take: { _ = try sysRead(reading.rawValue, capacity: 1) })
    }
}
