// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// The allocator of this program is glibc's, seen through functions that count.

#include "CAllocationCounter.h"
#include <errno.h>
#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif

#ifdef HAS_SANITIZER

int allocations_are_counted(void) { return 0; }
long allocation_count(void) { return 0; }

#else

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static long total;

static inline void note(void) { __atomic_fetch_add(&total, 1, __ATOMIC_RELAXED); }

int allocations_are_counted(void) { return 1; }
long allocation_count(void) { return __atomic_load_n(&total, __ATOMIC_RELAXED); }

void *malloc(size_t size) {
    note();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    note();
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
    note();
    return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    note();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    note();
    void *made = __libc_memalign(alignment, size);
    if (!made) return ENOMEM;
    *result = made;
    return 0;
}

#endif
