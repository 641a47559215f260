// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// System calls that an older kernel does not have, and that a filter (seccomp(2)) may forbid: at the start of a
// program, or at any time after. The first refusal is remembered for as long as the process lives, so no refused call
// is repeated. The alternative is at the place of the call.

import Synchronization

/// Whether the system refuses one call.
package final class Refusal: Sendable {
    private let code = Atomic<CInt>(0)  // zero, or the number of the first refusal

    package init() {}

    /// The system's error when it refused the call; nil until then.
    package var error: SystemError? {
        #if PORT_FAULTS
        if let memory = Refusals.memoryOfThread.value {
            if let error = memory.errors[ObjectIdentifier(self)] { return error }
            if memory.isAlone { return nil }
        }
        #endif
        let code = code.load(ordering: .relaxed)
        return code == 0 ? nil : SystemError(code)
    }

    private func store(_ error: SystemError) {
        #if PORT_FAULTS
        if let memory = Refusals.memoryOfThread.value {
            memory.errors[ObjectIdentifier(self)] = error
            return
        }
        #endif
        code.store(error.code, ordering: .relaxed)
    }

    /// Makes the call, unless the system has refused it before.
    ///
    /// - Parameters:
    ///   - isRefusal: which errors of this call mean that the system refuses it.
    ///   - call: makes the call.
    /// - Returns: the call's result.
    /// - Throws: the call's error, or the remembered refusal.
    @inline(__always)
    package func remember<Result: ~Copyable>(
        _ isRefusal: (SystemError) -> Bool = { $0.isRefusal }, _ call: () throws(SystemError) -> Result
    ) throws(SystemError) -> Result {
        if let error { throw error }
        do throws(SystemError) {
            return try call()
        } catch {
            if isRefusal(error) { store(error) }
            throw error
        }
    }

    /// Makes the call, or uses an alternative where the system refuses it.
    ///
    /// - Parameters:
    ///   - isRefusal: which errors of this call mean that the system refuses it.
    ///   - call: makes the call.
    ///   - otherwise: the alternative.
    /// - Returns: the result of either.
    /// - Throws: the call's error when that was no refusal, or the alternative's error.
    @inline(__always)
    package func avoid<Result: ~Copyable>(
        _ isRefusal: (SystemError) -> Bool = { $0.isRefusal }, _ call: () throws(SystemError) -> Result,
        otherwise: () throws(SystemError) -> Result
    ) throws(SystemError) -> Result {
        if error == nil {
            do throws(SystemError) {
                return try remember(isRefusal, call)
            } catch {
                if self.error == nil { throw error }
            }
        }
        return try otherwise()
    }
}

/// Whether the system refuses a call that no file, directory or path is a reason to refuse. A shortage is no refusal.
func isRefused<Result>(_ call: () throws(SystemError) -> Result) -> Bool {
    do throws(SystemError) {
        _ = try call()
        return false
    } catch {
        return error.isRefusal
    }
}

/// The calls that this system has refused so far.
package enum Refusals {
    /// `epoll_pwait2(2)`, Linux 5.11: without it, limits are whole milliseconds.
    package static let preciseWait = Refusal()
    /// `eventfd(2)`: without it, pipes are signalled.
    package static let eventDescriptor = Refusal()
    /// `memfd_create(2)` with `MFD_NOEXEC_SEAL`, Linux 6.3: otherwise without the flag.
    package static let sealedMemory = Refusal()
    /// `memfd_create(2)`: without it, there are no shared rings.
    package static let memory = Refusal()

    /// `pidfd_open(2)`, Linux 5.3: without it, a thread waits for each child, and the ends of other processes are
    /// detected by their locks.
    package static let processDescriptor = Refusal()
    /// `pidfd_send_signal(2)`, Linux 5.1: without it, children are signalled by their numbers.
    package static let processSignal = Refusal()
    /// `waitid(2)` with `P_PIDFD`, Linux 5.4: without it, children are waited for by their numbers.
    package static let processWait = Refusal()
    /// `getsockopt(2)` with `SO_PEERPIDFD`, Linux 6.5.
    package static let peerProcess = Refusal()

    /// `getsockopt(2)` with `SO_PEERGROUPS`, Linux 4.13: without it, only a peer's first group is known.
    package static let peerGroups = Refusal()

    /// A second shutdown of a socket as an edge at its other end: without it, there are no shared rings.
    package static let wakeChannel = Refusal()

    /// `inotify_init1(2)` and `inotify_add_watch(2)`: without them, there are no watches of directories.
    package static let directoryWatch = Refusal()
    /// `renameat2(2)`, Linux 3.15: without it, a file first gets its new name as a second link. An error of a file
    /// system that does not know the flag, or of a directory that forbids the change, is not remembered.
    package static let exclusiveRename = Refusal()

    /// Open-file-description locks (`fcntl(2)`), Linux 3.15: without them, a directory's first process decides which
    /// kind all processes use.
    package static let openFileLocks = Refusal()

    #if PORT_FAULTS
    /// The refusals that a thread remembers for itself.
    fileprivate final class Memory {
        var errors: [ObjectIdentifier: SystemError] = [:]
        let isAlone: Bool

        init(isAlone: Bool) {
            self.isAlone = isAlone
        }
    }

    fileprivate static let memoryOfThread = ThreadLocal<Memory>()

    /// Runs `body` as in a process that has met no refusal, and forgets those that this thread meets: for tests.
    ///
    /// - Returns: the body's result.
    /// - Throws: the body's error.
    package static func forgetting<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value
    {
        try remembering(Memory(isAlone: true), body)
    }

    /// Runs `body`, and forgets the refusals that this thread meets in it: they were forced.
    static func notRemembering<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        if memoryOfThread.value != nil { return try body() }
        return try remembering(Memory(isAlone: false), body)
    }

    private static func remembering<Value, Failure: Error>(
        _ memory: Memory, _ body: () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let outer = memoryOfThread.value
        memoryOfThread.value = memory
        defer { memoryOfThread.value = outer }
        return try body()
    }
    #endif
}
