/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the swift-message-port authors
 *
 * Copies between this process's memory and memory that a process on another processor reads or has written.
 */
#include "CPortShims.h"

#include <stdatomic.h>
#include <string.h>

/* One step: the size of a cache line. */
enum { line = 64, vector = 16, vectors = line / vector };
typedef long long vector_t __attribute__((vector_size(vector), may_alias));

/* How far ahead of the copy lines are prefetched. */
enum { lead = 4096 };

void shim_copy_non_temporally(void *target, const void *source, size_t count) {
    char *to = target;
    const char *from = source;
    size_t head = -(uintptr_t)to & (line - 1);
    if (head > count) head = count;
    memcpy(to, from, head);
    to += head, from += head, count -= head;
    for (; count >= line; to += line, from += line, count -= line) {
        vector_t part[vectors];
        memcpy(part, from, line);
        for (int index = 0; index < vectors; index++)
            __builtin_nontemporal_store(part[index], (vector_t *)to + index);
    }
    memcpy(to, from, count);
    /* These stores are not ordered with later ones. */
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#else
    atomic_thread_fence(memory_order_release);
#endif
}

void shim_copy_prefetching(void *target, const void *source, size_t count) {
    char *to = target;
    const char *from = source;
    for (; count >= line; to += line, from += line, count -= line) {
        vector_t part[vectors];
        __builtin_prefetch((const void *)((uintptr_t)from + lead));  /* where there is none, nothing happens */
        memcpy(part, from, line);
        memcpy(to, part, line);
    }
    memcpy(to, from, count);
}
