// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A futex(2), on which a thread sleeps that waits for no descriptor. It uses no descriptor, and one system call on
// either side, where an eventfd needs three in all. A thread that wants to sleep reads the word, announces that it
// sleeps, and sleeps as long as the word has the value that was read. A thread that wakes it changes the word first.
// So no wake-up after the word was read is missed.

import CPortShims
import PortCLibrary
import Synchronization

/// A word in memory on which one thread sleeps, and through which any thread may wake it.
@safe package struct Futex: ~Copyable, @unchecked Sendable {
    // @unchecked: the word is atomic; its memory stays at one address, where the kernel finds it, until this is
    // destroyed.
    private let word: UnsafeMutablePointer<Atomic<UInt32>>  // immutable

    /// - Parameter count: the word's first value, as if it had been woken that many times; for tests.
    package init(signalled count: UInt32 = 0) {
        unsafe word = UnsafeMutablePointer<Atomic<UInt32>>.allocate(capacity: 1)
        unsafe word.initialize(to: Atomic(count))
    }

    deinit {
        unsafe word.deinitialize(count: 1)
        unsafe word.deallocate()
    }

    /// The word's value, to be passed to the next sleep.
    package var value: UInt32 { unsafe word.pointee.load(ordering: .sequentiallyConsistent) }

    /// Sleeps until a wake-up or the deadline; may return earlier.
    ///
    /// - Parameters:
    ///   - expected: the value that was read from the word: after a wake-up since then, there is no sleep.
    ///   - deadline: when to wake at the latest.
    package func sleep(_ expected: UInt32, until deadline: MonotonicInstant) {
        do throws(SystemError) {
            _ = try retrying(.futex) {
                unsafe shim_futex_wait(word, expected, max(0, deadline.nanoseconds))
            }
        } catch {
            switch error.code {
            case EAGAIN, ETIMEDOUT: break
            default: fatalError("A thread cannot sleep: \(error). Does a filter of system calls forbid futex(2)?")
            }
        }
    }

    /// Changes the word, so that no sleep begins with an old value, and wakes the sleeping thread.
    package func signal() {
        unsafe word.pointee.wrappingAdd(1, ordering: .sequentiallyConsistent)
        _ = try? retrying(.futex) { unsafe shim_futex_wake(word) }  // it fails for no word that is there
    }
}
