// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#if PORT_FAULTS

import Glibc
@testable import PortSystem
import TestSupport
import Testing

@Suite("DescriptorCloser", .census) struct DescriptorCloserTests {
    @Test("descriptors are closed in the order in which they were let go, so that no giver waits behind later ones")
    func order() async throws {
        try await onNewThread {
            let closed = Recorder<Int>()
            try DescriptorCloser.suspended { () throws in
                for number in 0..<40 {
                    let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
                    try #require(descriptor >= 0)
                    DescriptorCloser.close(descriptor, of: Giver(number, closed))
                }
                #expect(closed.elements == [])
            }
            #expect(closed.waitUntilCount(40) == Array(0..<40))
        }
    }
}

private final class Giver: DescriptorGiver {
    private let number: Int
    private let closed: Recorder<Int>

    init(_ number: Int, _ closed: Recorder<Int>) {
        (self.number, self.closed) = (number, closed)
    }

    func willClose() {}
    func didClose() { closed.append(number) }
}

#endif
