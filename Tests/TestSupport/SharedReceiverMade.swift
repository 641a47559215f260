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

/// What is overdue is sent by the shared thread, which has the connection until it is done: the test may be so before it.
func waitForSharedReceiver() {
    guard let loop = SharedReceiver.startedLoop else { return }
    // It may have to see what the test has done, to ask the kernel about that, to act, and to end the turn in which it did.
    // That is enough for one thing that was left to it.
    for _ in 0..<4 {
        let done = Gate("the next block of the shared thread")
        loop.perform { done.open() }
        guard done.wait() else { return }
    }
}

/// The loop has slept with a descriptor, and with a word besides: its doorbell and its set are there, and what it sleeps on. The
/// descriptor stays.
private let receiverMade = Result {
    var ends: [CInt] = [-1, -1]
    guard pipe(&ends) == 0 else { throw SystemError(errno) }
    for end in ends {
        keptEnds.append(SharedDescriptor(owning: end))
        try sysCloseOnExec(end)
    }
    _ = try sysWrite(ends[1], [1])
    let place = SleepingPlace(try SleepOnWords.makeRing())
    let source = RunLoopSource(name: "a place to sleep at", routine: place)
    try source.watch(ends[0])
    try SharedReceiver.loop().add(source)
    place.hasLooked.wait()
    let deadline = Watchdog.deadline
    while SleepOnWords.isAllowed, !place.hasSlept.isOpen, .now < deadline {
        _ = place.ring.wakeReader()
        yieldThread()
    }
    source.invalidate()
}

/// A place at which nothing arrives.
private final class SleepingPlace: ArrivalPlace, SourceRoutine {
    let ring: RecordRing  // immutable
    let hasLooked = Gate("the receiver's look")
    let hasSlept = Gate("the receiver's sleep")

    init(_ ring: RecordRing) { self.ring = ring }

    func visitArrivalPlaces(_ body: (any ArrivalPlace) -> Void) { body(self) }
    func perform() -> SourceOutcome {
        _ = try? sysDiscard(keptEnds.elements[0].rawValue, 1)
        hasLooked.open()
        return .handled
    }

    func beginLooking() -> UInt64? { hasSlept.isOpen ? nil : 1 }
    var hasArrived: Bool { false }
    func takeIn() -> Bool { true }
    func doze(_ look: UInt64) -> DozeAnswer {
        ring.setReader(.dozing)
        return .word(ring.word)
    }
    func endDoze(_ look: UInt64) {
        ring.endDoze()
        hasSlept.open()
    }
    func keepLooking(_ look: UInt64, for source: ItemID, on loop: ThreadRunLoop) -> Bool { false }
    func isKept(_ look: UInt64) -> Bool { false }
    func endLooking(_ look: UInt64) {}
}

private let keptEnds = Recorder<SharedDescriptor>()
