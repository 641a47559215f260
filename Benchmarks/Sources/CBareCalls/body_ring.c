// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Large bodies in pieces through memory that two threads share, as through a connection's ring, with nothing else of a
// message: the least cost of two copies between two processors. Neither side sleeps.

#include "common.h"

enum { capacity = 256 << 10, piece = 32 << 10, line = 64, lead = 4096 };
typedef long long vector __attribute__((vector_size(16), may_alias));

struct bare_body_ring {
    _Alignas(128) uint64_t sent;
    _Alignas(128) uint64_t read;
    _Alignas(128) bare_gate gate;
    int ends, past_caches;
    pthread_t thread;
    int64_t size;
    char *source, *target;
    _Alignas(4096) char bytes[capacity];
};

static void copy_past_caches(char *to, const char *from) {
    for (int at = 0; at < piece; at += line) {
        vector part[4];
        memcpy(part, from + at, line);
        for (int index = 0; index < 4; index++) __builtin_nontemporal_store(part[index], (vector *)(to + at) + index);
    }
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#endif
}

static void copy_asking_ahead(char *to, const char *from) {
    for (int at = 0; at < piece; at += line) {
        __builtin_prefetch((const void *)((uintptr_t)from + at + lead));
        memcpy(to + at, from + at, line);
    }
}

/// The other side copies a body into memory of its own.
static void take_body(bare_body_ring *ring, uint64_t *position) {
    for (int64_t at = 0; at < ring->size; at += piece, *position += piece) {
        unsigned polls = 0;
        while (__atomic_load_n(&ring->sent, __ATOMIC_ACQUIRE) == *position) bare_poll_again(&polls);
        copy_asking_ahead(ring->target + at, ring->bytes + *position % capacity);
        __atomic_store_n(&ring->read, *position + piece, __ATOMIC_RELEASE);
    }
}

static void *receive(void *context) {
    bare_body_ring *ring = context;
    uint64_t position = 0;
    unsigned polls = 0;
    while (!__atomic_load_n(&ring->ends, __ATOMIC_ACQUIRE)) {
        if (__atomic_load_n(&ring->sent, __ATOMIC_ACQUIRE) > position) {
            polls = 0;
            take_body(ring, &position);
        } else {
            bare_poll_again(&polls);
            bare_gate_pass(&ring->gate);
        }
    }
    return NULL;
}

static void put_body(bare_body_ring *ring) {
    for (int64_t at = 0; at < ring->size; at += piece) {
        uint64_t position = ring->sent;
        unsigned polls = 0;
        while (position + piece - __atomic_load_n(&ring->read, __ATOMIC_ACQUIRE) > capacity) bare_poll_again(&polls);
        char *to = ring->bytes + position % capacity;
        ring->past_caches ? copy_past_caches(to, ring->source + at) : (void)memcpy(to, ring->source + at, piece);
        __atomic_store_n(&ring->sent, position + piece, __ATOMIC_RELEASE);
    }
}

static void discard(bare_body_ring *ring) {
    free(ring->source);
    free(ring->target);
    free(ring);
}

bare_body_ring *bare_body_ring_start(int64_t size, int past_caches, int place) {
    bare_body_ring *ring = aligned_alloc(4096, sizeof *ring);
    if (!ring) return NULL;
    memset(ring, 0, sizeof *ring);
    ring->size = size;
    ring->past_caches = past_caches;
    ring->source = malloc(size);
    ring->target = malloc(size);
    if (!ring->source || !ring->target || pthread_create(&ring->thread, NULL, receive, ring) != 0) {
        discard(ring);
        return NULL;
    }
    memset(ring->source, 7, size);
    memset(ring->target, 0, size);
    if (bare_bind_thread(ring->thread, place) == 0) return ring;
    bare_body_ring_end(ring);
    return NULL;
}

int64_t bare_body_ring_send(bare_body_ring *ring, int64_t count, int64_t *laps) {
    bare_gate_open(&ring->gate);
    int64_t start = bare_now(), last = start;
    for (int64_t i = 0; i < count; i++) {
        unsigned polls = 0;
        put_body(ring);
        while (__atomic_load_n(&ring->read, __ATOMIC_ACQUIRE) < ring->sent) bare_poll_again(&polls);
        bare_end_lap(laps, i, &last);
    }
    int64_t time = bare_now() - start;
    bare_gate_close(&ring->gate);
    return time;
}

void bare_body_ring_end(bare_body_ring *ring) {
    __atomic_store_n(&ring->ends, 1, __ATOMIC_RELEASE);
    bare_gate_open(&ring->gate);
    pthread_join(ring->thread, NULL);
    discard(ring);
}
