// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// A body in memory that two threads share: one writes all of it, the other reads all of it. The least cost of a body that
// is not copied. Neither side sleeps.

#include "common.h"
#include <sys/mman.h>

struct bare_passes {
    /// How many bodies were written, and read. Each counter has cache lines of its own.
    _Alignas(128) uint64_t written;
    _Alignas(128) uint64_t read;
    _Alignas(128) bare_gate gate;
    int ends;
    pthread_t thread;
    size_t size, slots;
    uint8_t *bodies;
};

void bare_fill_words(void *start, size_t size, uint64_t word) {
    uint64_t *words = start;
    for (size_t index = 0; index < size / sizeof *words; index++) words[index] = word;
}

uint64_t bare_sum_words(const void *start, size_t size) {
    const uint64_t *words = start;
    uint64_t sum = 0;
    for (size_t index = 0; index < size / sizeof *words; index++) sum += words[index];
    return sum;
}

static void *body_at(bare_passes *passes, uint64_t number) {
    return passes->bodies + number % passes->slots * passes->size;
}

static void *receive(void *context) {
    bare_passes *passes = context;
    uint64_t known = 0;
    unsigned polls = 0;
    while (!__atomic_load_n(&passes->ends, __ATOMIC_ACQUIRE)) {
        if (__atomic_load_n(&passes->written, __ATOMIC_ACQUIRE) == known) {
            bare_poll_again(&polls);
            bare_gate_pass(&passes->gate);
            continue;
        }
        polls = 0;
        known++;
        // Each word of a body has its number.
        uint64_t sum = bare_sum_words(body_at(passes, known), passes->size);
        if (sum != known * (passes->size / sizeof known)) abort();
        __atomic_store_n(&passes->read, known, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void discard(bare_passes *passes) {
    munmap(passes->bodies, passes->size * passes->slots);
    free(passes);
}

bare_passes *bare_passes_start(size_t size, size_t slots, int place) {
    // Shared, so that it has pages of the kind that a file of memory has.
    size_t length = size * slots;
    void *bodies = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (bodies == MAP_FAILED) return NULL;
    bare_passes *passes = aligned_alloc(128, sizeof *passes);
    if (!passes) {
        munmap(bodies, length);
        return NULL;
    }
    *passes = (bare_passes){.size = size, .slots = slots, .bodies = bodies};
    if (pthread_create(&passes->thread, NULL, receive, passes) != 0) {
        discard(passes);
        return NULL;
    }
    if (bare_bind_thread(passes->thread, place) == 0) return passes;
    bare_passes_end(passes);
    return NULL;
}

int64_t bare_passes_run(bare_passes *passes, int64_t count, int64_t *laps) {
    bare_gate_open(&passes->gate);
    int64_t start = bare_now(), last = start;
    for (int64_t i = 0; i < count; i++) {
        uint64_t number = passes->written + 1;
        unsigned polls = 0;
        bare_fill_words(body_at(passes, number), passes->size, number);
        __atomic_store_n(&passes->written, number, __ATOMIC_RELEASE);
        while (__atomic_load_n(&passes->read, __ATOMIC_ACQUIRE) != number) bare_poll_again(&polls);
        bare_end_lap(laps, i, &last);
    }
    int64_t time = bare_now() - start;
    bare_gate_close(&passes->gate);
    return time;
}

void bare_passes_end(bare_passes *passes) {
    __atomic_store_n(&passes->ends, 1, __ATOMIC_RELEASE);
    bare_gate_open(&passes->gate);
    pthread_join(passes->thread, NULL);
    discard(passes);
}
