// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import NamedPortServer

/// The end of the pipe into which the signal handler writes.
nonisolated(unsafe) private var interruptPipe: CInt = -1
/// The text to write when a signal ends the program.
nonisolated(unsafe) private var lastWords: StaticString = ""

/// SIGINT, SIGTERM and SIGHUP as a descriptor to wait on. During a call that waits for something else Ctrl-C would have
/// no effect: such calls are made before, or the program ends at the signal.
struct Interrupt {
    static let signals = [SIGINT, SIGTERM, SIGHUP]

    /// Readable once one of them has come.
    let descriptor: CInt

    /// From now on these signals do not end the program. To be called once.
    init() throws(SystemError) {
        let (reading, writing) = try makePipe()
        for end in [reading, writing] { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        _ = fcntl(writing, F_SETFL, O_NONBLOCK)  // a handler must not wait
        (descriptor, interruptPipe) = (reading, writing)
        for number in Self.signals {
            sysHandleSignal(number) { number, information, _ in
                // Only a signal that a process has sent has a code that is not positive.
                let code = errno
                let isOfTerminal = (information?.assumingMemoryBound(to: siginfo_t.self).pointee.si_code ?? 0) > 0
                var byte = UInt8(number) | (isOfTerminal ? Self.terminalMark : 0)
                _ = PortCLibrary.write(interruptPipe, &byte, 1)
                errno = code
            }
        }
    }

    private static let terminalMark: UInt8 = 0x80

    /// Waits for one of the signals.
    ///
    /// - Returns: false when the moment came first.
    func wait(until moment: MonotonicInstant) throws(SystemError) -> Bool {
        try !sysPoll(descriptor, .readable, until: moment).isEmpty
    }

    /// The keys by which a set reports signals, and another descriptor.
    static let (signalKey, otherKey): (UInt64, UInt64) = (1, 0)

    /// Makes a set that reports signals, and when another descriptor is readable.
    func epollSet(with other: CInt) throws(SystemError) -> EpollSet {
        let epoll = try EpollSet()
        try epoll.add(other, .readable, key: Self.otherKey)
        try epoll.add(descriptor, .readable, key: Self.signalKey)
        return epoll
    }

    /// A signal's number, and whether it came from the terminal, which sends it to all processes of the job.
    typealias Signal = (number: CInt, isOfTerminal: Bool)

    /// Reads a signal that has come.
    func readSignal() throws(SystemError) -> Signal {
        let byte = try sysRead(descriptor, capacity: 1)?.first ?? 0
        return (CInt(byte & ~Self.terminalMark), byte & Self.terminalMark != 0)
    }

    /// From now on these signals end the program again.
    func end() {
        for number in Self.signals { signal(number, SIG_DFL) }
    }

    /// From now on these signals end the program at once, whatever it is waiting for, with the status of success.
    ///
    /// - Parameter words: the text to write to standard output then.
    static func endsProgram(writing words: StaticString = "") {
        lastWords = words
        for number in signals {
            signal(number) { _ in
                _ = PortCLibrary.write(STDOUT_FILENO, lastWords.utf8Start, lastWords.utf8CodeUnitCount)
                _exit(ExitStatus.done.rawValue)
            }
        }
    }
}

/// Makes a pipe, which children inherit.
func makePipe() throws(SystemError) -> (reading: CInt, writing: CInt) {
    var ends: [CInt] = [-1, -1]
    if pipe(&ends) != 0 { throw SystemError(errno) }
    return (ends[0], ends[1])
}
