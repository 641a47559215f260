// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Messages of 64 bytes in memory that two threads, or two processes, share: two rings, and neither side sleeps. The
// least cost of a transfer between two processors, with nothing of a message but its bytes.

#include "common.h"
#include <sys/mman.h>

enum { slots = 1024, line = 128, message = 64 };

/// Each counter has cache lines of its own. The producer sets `sent`, the consumer `read`.
typedef struct ring {
    _Alignas(line) uint64_t sent;
    _Alignas(line) uint64_t read;
    _Alignas(line) char slot[slots][message];
} ring;

struct bare_memory {
    ring there, back;
    _Alignas(line) int ends;
    bare_gate gate;
};

int bare_memory_file(void) {
    int file = memfd_create("portbench", MFD_CLOEXEC);
    if (file >= 0 && ftruncate(file, sizeof(bare_memory)) == 0) return file;
    if (file >= 0) close(file);
    return -1;
}

bare_memory *bare_memory_map(int file) {
    void *start = mmap(NULL, sizeof(bare_memory), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return start == MAP_FAILED ? NULL : start;
}

void bare_memory_unmap(bare_memory *memory) { munmap(memory, sizeof *memory); }

/// Returns the number of messages, when there are more than `known`.
static uint64_t more_than(const uint64_t *counter, uint64_t known) {
    unsigned polls = 0;
    uint64_t now;
    while ((now = __atomic_load_n(counter, __ATOMIC_ACQUIRE)) == known) bare_poll_again(&polls);
    return now;
}

static void put(ring *to, const char *bytes) {
    uint64_t position = to->sent;
    unsigned polls = 0;
    while (position - __atomic_load_n(&to->read, __ATOMIC_ACQUIRE) == slots) bare_poll_again(&polls);
    memcpy(to->slot[position % slots], bytes, message);
    __atomic_store_n(&to->sent, position + 1, __ATOMIC_RELEASE);
}

static void take(ring *from, uint64_t position, char *bytes) {
    memcpy(bytes, from->slot[position % slots], message);
    __asm__ volatile("" : : "r"(bytes) : "memory");
    __atomic_store_n(&from->read, position + 1, __ATOMIC_RELEASE);
}

void bare_memory_serve(bare_memory *memory, int answers) {
    char bytes[message];
    uint64_t position = memory->there.read;
    unsigned polls = 0;
    while (1) {
        if (__atomic_load_n(&memory->there.sent, __ATOMIC_ACQUIRE) > position) {
            polls = 0;
            take(&memory->there, position++, bytes);
            if (answers) put(&memory->back, bytes);
        } else if (__atomic_load_n(&memory->ends, __ATOMIC_ACQUIRE)) {
            return;
        } else {
            bare_poll_again(&polls);
            bare_gate_pass(&memory->gate);
        }
    }
}

int64_t bare_memory_run(bare_memory *memory, int64_t count, int64_t *laps) {
    char bytes[message] = {7};
    bare_gate_open(&memory->gate);
    int64_t start = bare_now(), last = start;
    for (int64_t i = 0; i < count; i++) {
        uint64_t position = memory->back.read;
        put(&memory->there, bytes);
        more_than(&memory->back.sent, position);
        take(&memory->back, position, bytes);
        bare_end_lap(laps, i, &last);
    }
    int64_t time = bare_now() - start;
    bare_gate_close(&memory->gate);
    return time;
}

int64_t bare_memory_send(bare_memory *memory, int64_t count) {
    char bytes[message] = {7};
    bare_gate_open(&memory->gate);
    int64_t start = bare_now();
    unsigned polls = 0;
    for (int64_t i = 0; i < count; i++) put(&memory->there, bytes);
    while (__atomic_load_n(&memory->there.read, __ATOMIC_ACQUIRE) < memory->there.sent) bare_poll_again(&polls);
    int64_t time = bare_now() - start;
    bare_gate_close(&memory->gate);
    return time;
}

void bare_memory_end(bare_memory *memory) {
    __atomic_store_n(&memory->ends, 1, __ATOMIC_SEQ_CST);
    bare_gate_open(&memory->gate);
}
