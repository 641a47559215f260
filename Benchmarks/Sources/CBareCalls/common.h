// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include "bare_calls.h"
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/// As `bare_bind`, for any thread.
int bare_bind_thread(pthread_t thread, int place);

/// After one of many polls that found nothing: waits a moment, and now and then yields the processor. Ends the program
/// after some seconds of polls: the other side must have gone.
static inline void bare_poll_again(unsigned *polls) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
    if (++*polls % 4096 == 0) sched_yield();
    if (*polls == 1u << 29) {
        fputs("portbench: the other side of shared memory has gone\n", stderr);
        _exit(1);
    }
}

/// Records how long an operation took, if laps are wanted. The next one begins now.
static inline void bare_end_lap(int64_t *laps, int64_t index, int64_t *last) {
    if (!laps) return;
    int64_t now = bare_now();
    laps[index] = now - *last;
    *last = now;
}

/// Whether the other side may spin now. Between its slices it sleeps, and disturbs no other contestant.
typedef int bare_gate;

static inline void bare_gate_open(bare_gate *gate) {
    __atomic_store_n(gate, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, gate, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static inline void bare_gate_close(bare_gate *gate) { __atomic_store_n(gate, 0, __ATOMIC_SEQ_CST); }

static inline void bare_gate_pass(bare_gate *gate) {
    while (!__atomic_load_n(gate, __ATOMIC_ACQUIRE)) syscall(SYS_futex, gate, FUTEX_WAIT, 0, NULL, NULL, 0);
}
