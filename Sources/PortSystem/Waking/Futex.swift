// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// What a thread sleeps on that waits for no descriptor: a futex(2). It takes no descriptor, and one system call on
// either side where an eventfd takes three in all. Who sleeps takes a ticket, says that it sleeps, and sleeps with the
// ticket; who rings makes all tickets void. So a ring is never missed that comes after the ticket was taken.

import CPortShims
import PortCLibrary
import Synchronization

/// A word in memory on which one thread sleeps, and which any thread may ring.
@safe package struct Futex: ~Copyable, @unchecked Sendable {
    // @unchecked: the word is atomic; it lies where the kernel finds it until this goes.
    private let word: UnsafeMutablePointer<Atomic<UInt32>>  // immutable

    /// - Parameter count: how often it counts as rung; for tests.
    package init(rung count: UInt32 = 0) {
        unsafe word = UnsafeMutablePointer<Atomic<UInt32>>.allocate(capacity: 1)
        unsafe word.initialize(to: Atomic(count))
    }

    deinit {
        unsafe word.deinitialize(count: 1)
        unsafe word.deallocate()
    }

    /// For the next sleep.
    package var ticket: UInt32 { unsafe word.pointee.load(ordering: .sequentiallyConsistent) }

    /// Sleeps until the word is rung, or the deadline has come; perhaps not so long.
    ///
    /// - Parameters:
    ///   - ticket: when the word was rung since it was taken, there is no sleep.
    ///   - deadline: when to wake at the latest.
    package func sleep(_ ticket: UInt32, until deadline: MonotonicInstant) {
        do throws(SystemError) {
            _ = try retrying(.futex) {
                unsafe shim_sleep_on(word, ticket, max(0, deadline.nanoseconds))
            }
        } catch {
            switch error.code {
            case EAGAIN, ETIMEDOUT: break
            default: fatalError("A thread cannot sleep: \(error). Does a filter of system calls forbid futex(2)?")
            }
        }
    }

    /// Makes all tickets void, and wakes the thread that sleeps.
    package func ring() {
        unsafe word.pointee.wrappingAdd(1, ordering: .sequentiallyConsistent)
        _ = try? retrying(.futex) { unsafe shim_wake_on(word) }  // it fails for no word that is there
    }
}
