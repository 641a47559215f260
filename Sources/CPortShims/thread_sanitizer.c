/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the swift-message-port authors
 *
 * Describes to the thread sanitizer what Swift's Mutex does under contention; empty in every other build.
 *
 * The uncontended paths of Mutex are inlined into our code, so the sanitizer sees their atomics. The contended ones are
 * in libswiftSynchronization, which is not instrumented, and end in futex(2): the sanitizer would miss that the last
 * holder's writes happen before the next holder's reads, and report races where there are none. So the program's own
 * definitions of those three functions override the library's, call them, and declare the order that they establish. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

void __tsan_acquire(void *address);
void __tsan_release(void *address);

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *self
#define LOCK_SLOW "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY_LOCK_SLOW "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK_SLOW "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

typedef SWIFT void lock_function(uint32_t thread, SELF);
typedef SWIFT bool try_lock_function(SELF);
typedef SWIFT void unlock_function(SELF);

SWIFT void shim_mutex_lock_slow(uint32_t thread, SELF) __asm__(LOCK_SLOW);
SWIFT bool shim_mutex_try_lock_slow(SELF) __asm__(TRY_LOCK_SLOW);
SWIFT void shim_mutex_unlock_slow(SELF) __asm__(UNLOCK_SLOW);

static void *original(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (function == NULL) abort();
    return function;
}

SWIFT void shim_mutex_lock_slow(uint32_t thread, SELF) {
    ((lock_function *)original(LOCK_SLOW))(thread, self);
    __tsan_acquire(self);
}

SWIFT bool shim_mutex_try_lock_slow(SELF) {
    bool locked = ((try_lock_function *)original(TRY_LOCK_SLOW))(self);
    if (locked) __tsan_acquire(self);
    return locked;
}

SWIFT void shim_mutex_unlock_slow(SELF) {
    __tsan_release(self);
    ((unlock_function *)original(UNLOCK_SLOW))(self);
}

#endif
#endif
