// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// The allocator of this program is glibc's, behind functions that count while counting is on.

#include "common.h"

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static int isOn;
static int64_t total;

static inline void note(void) {
    if (__atomic_load_n(&isOn, __ATOMIC_RELAXED)) __atomic_fetch_add(&total, 1, __ATOMIC_RELAXED);
}

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

void *memalign(size_t alignment, size_t size) {
    note();
    return __libc_memalign(alignment, size);
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

void bare_allocations_begin(void) {
    __atomic_store_n(&total, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&isOn, 1, __ATOMIC_SEQ_CST);
}

int64_t bare_allocations_end(void) {
    __atomic_store_n(&isOn, 0, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&total, __ATOMIC_SEQ_CST);
}
