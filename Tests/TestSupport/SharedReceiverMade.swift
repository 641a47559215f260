// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import MessagePort
import PortSystem
import RunLoopCore
import Testing

/// Makes what a process keeps once it has had sockets: a spare descriptor, and the threads that close descriptors and
/// receive for tasks. For the warm-up of a census.
@Sendable package func makeSharedReceiver() throws {
    SpareDescriptor.shared.keep()
    DescriptorCloser.start()
    try receiverMade.get()
}

/// The loop has slept with a descriptor: its doorbell and its set are there. The descriptor stays.
private let receiverMade = Result {
    var ends: [CInt] = [-1, -1]
    guard pipe(&ends) == 0 else { throw SystemError(errno) }
    for end in ends {
        keptEnds.append(SharedDescriptor(owning: end))
        try sysCloseOnExec(end)
    }
    _ = try sysWrite(ends[1], [1])
    let seen = Gate("the receiver's look")
    let source = RunLoopSource(descriptor: ends[0]) { seen.open() }
    try SharedReceiver.loop().add(source)
    seen.wait()
    source.invalidate()
}

private let keptEnds = Recorder<SharedDescriptor>()
