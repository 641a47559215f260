// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary

/// An event that a thread waits for with a deadline: once set, every waiter sees it, now or later, until it is cleared.
@safe package final class ThreadEvent: @unchecked Sendable {
    // @unchecked: `isSet` is guarded by `mutex`; the two C objects never move and are made for use by many threads.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var isSet = false  // guarded by mutex

    /// Makes an event that is not set.
    package init() {
        unsafe pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        unsafe pthread_condattr_init(&attributes)
        unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        unsafe pthread_cond_init(condition, &attributes)
        unsafe pthread_condattr_destroy(&attributes)
    }

    deinit {
        unsafe pthread_cond_destroy(condition)
        unsafe pthread_mutex_destroy(mutex)
        unsafe condition.deallocate()
        unsafe mutex.deallocate()
    }

    /// Sets the event and wakes every waiter.
    package func set() {
        unsafe pthread_mutex_lock(mutex)
        isSet = true
        unsafe pthread_cond_broadcast(condition)
        unsafe pthread_mutex_unlock(mutex)
    }

    /// Makes the event not set. Everything that was done before each `set` that this call undoes is visible after it.
    package func clear() {
        unsafe pthread_mutex_lock(mutex)
        isSet = false
        unsafe pthread_mutex_unlock(mutex)
    }

    /// Blocks until the event is set or the deadline has passed.
    ///
    /// - Returns: whether the event is set.
    @discardableResult
    package func wait(until deadline: MonotonicInstant) -> Bool {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        while !isSet {
            if deadline == .distantFuture {
                unsafe pthread_cond_wait(condition, mutex)
                continue
            }
            if deadline <= .now { return false }
            let time = max(0, deadline.nanoseconds)
            var limit = timespec(tv_sec: Int(time / 1_000_000_000), tv_nsec: Int(time % 1_000_000_000))
            unsafe pthread_cond_timedwait(condition, mutex, &limit)
        }
        return true
    }
}
