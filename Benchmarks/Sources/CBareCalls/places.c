// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Threads that stay on one processor. A place is a number among the processors that this program may use: 0 is the
// first.

#include "common.h"
#include <sched.h>

enum { most = 8192, bytes = most / 8 };

static union {
    cpu_set_t set;
    char room[bytes];
} allowed;

// Before any thread is bound: threads that a bound thread starts would see fewer processors.
__attribute__((constructor)) static void read_allowed(void) { sched_getaffinity(0, bytes, &allowed.set); }

int bare_processor_count(void) { return CPU_COUNT_S(bytes, &allowed.set); }

int bare_bind_thread(pthread_t thread, int place) {
    if (place < 0) return 0;
    for (int processor = 0; processor < most; processor++) {
        if (!CPU_ISSET_S(processor, bytes, &allowed.set) || place-- > 0) continue;
        union {
            cpu_set_t set;
            char room[bytes];
        } one;
        CPU_ZERO_S(bytes, &one.set);
        CPU_SET_S(processor, bytes, &one.set);
        return pthread_setaffinity_np(thread, bytes, &one.set);
    }
    return ENODEV;
}

int bare_bind(int place) { return bare_bind_thread(pthread_self(), place); }
