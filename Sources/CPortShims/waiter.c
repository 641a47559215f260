/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the swift-message-port authors
 *
 * io_uring(7) with nothing but what it takes to wait for words in memory and a descriptor at once. Waiting for words came
 * with Linux 6.7; the flags here are older, and a kernel that does not know them refuses to open. */
#define _GNU_SOURCE
#include "CPortShims.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Younger than the headers of some systems; the numbers are the kernel's for good. */
#define OPERATION_FUTEX_WAIT 51        /* IORING_OP_FUTEX_WAIT, Linux 6.7 */
#define SETUP_SINGLE_ISSUER (1u << 12) /* IORING_SETUP_SINGLE_ISSUER, Linux 6.0 */
#define SETUP_DEFER_TASKRUN (1u << 13) /* IORING_SETUP_DEFER_TASKRUN, Linux 6.1 */
#define SETUP_NO_SQARRAY (1u << 16)    /* IORING_SETUP_NO_SQARRAY, Linux 6.6 */
#define FUTEX_OF_32_BITS 2             /* FUTEX2_SIZE_U32 */

int shim_waiter_open(shim_waiter *waiter, unsigned entries) {
    struct io_uring_params parameters = {.flags = SETUP_SINGLE_ISSUER | SETUP_DEFER_TASKRUN | SETUP_NO_SQARRAY};
    memset(waiter, 0, sizeof *waiter);
    /* The kernel makes it close-on-exec. */
    waiter->descriptor = (int)syscall(SYS_io_uring_setup, entries, &parameters);
    if (waiter->descriptor < 0) return -1;
    waiter->countersSize = parameters.cq_off.cqes + parameters.cq_entries * sizeof(struct io_uring_cqe);
    waiter->entriesSize = parameters.sq_entries * sizeof(struct io_uring_sqe);
    int protection = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
    char *counters = mmap(NULL, waiter->countersSize, protection, flags, waiter->descriptor, IORING_OFF_SQ_RING);
    void *list = mmap(NULL, waiter->entriesSize, protection, flags, waiter->descriptor, IORING_OFF_SQES);
    waiter->counters = counters == MAP_FAILED ? NULL : counters;
    waiter->entries = list == MAP_FAILED ? NULL : list;
    if (!waiter->counters || !waiter->entries) {
        int reason = errno;
        shim_waiter_close(waiter);
        errno = reason;
        return -1;
    }
    waiter->submissionMask = parameters.sq_entries - 1;
    waiter->completionMask = parameters.cq_entries - 1;
    waiter->submissionTail = (uint32_t *)(void *)(counters + parameters.sq_off.tail);
    waiter->completionHead = (uint32_t *)(void *)(counters + parameters.cq_off.head);
    waiter->completionTail = (uint32_t *)(void *)(counters + parameters.cq_off.tail);
    waiter->completions = counters + parameters.cq_off.cqes;
    return 0;
}

void shim_waiter_close(shim_waiter *waiter) {
    if (waiter->counters) munmap(waiter->counters, waiter->countersSize);
    if (waiter->entries) munmap(waiter->entries, waiter->entriesSize);
    close(waiter->descriptor);
}

/* The kernel reads the tail in the thread's own call. */
static struct io_uring_sqe *next_entry(shim_waiter *waiter, unsigned operation, uint64_t key) {
    uint32_t tail = *waiter->submissionTail;
    struct io_uring_sqe *entry = (struct io_uring_sqe *)waiter->entries + (tail & waiter->submissionMask);
    memset(entry, 0, sizeof *entry);
    entry->opcode = (uint8_t)operation;
    entry->user_data = key;
    __atomic_store_n(waiter->submissionTail, tail + 1, __ATOMIC_RELEASE);
    waiter->submitted += 1;
    return entry;
}

void shim_waiter_add_descriptor(shim_waiter *waiter, int descriptor, uint64_t key) {
    struct io_uring_sqe *entry = next_entry(waiter, IORING_OP_POLL_ADD, key);
    entry->fd = descriptor;
    entry->poll32_events = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? (uint32_t)POLLIN << 16 : POLLIN;
}

void shim_waiter_add_word(shim_waiter *waiter, uintptr_t word, uint32_t value, uint64_t key) {
    struct io_uring_sqe *entry = next_entry(waiter, OPERATION_FUTEX_WAIT, key);
    entry->fd = FUTEX_OF_32_BITS; /* the flags of futex_wait(2) */
    entry->addr = word;
    entry->off = value;        /* `addr2` */
    const uint64_t mask = UINT32_MAX; /* whoever wakes it */
    memcpy((char *)entry + 48, &mask, sizeof mask); /* `addr3`, younger than some headers */
}

void shim_waiter_remove(shim_waiter *waiter, uint64_t key) {
    struct io_uring_sqe *entry = next_entry(waiter, IORING_OP_ASYNC_CANCEL, UINT64_MAX);
    entry->addr = key;
}

int shim_waiter_wait(shim_waiter *waiter, int64_t nanoseconds) {
    struct __kernel_timespec time = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
    struct io_uring_getevents_arg limit = {.ts = nanoseconds < 0 ? 0 : (uintptr_t)&time};
    long count = syscall(SYS_io_uring_enter, waiter->descriptor, waiter->submitted, 1,
                         IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &limit, sizeof limit);
    if (count > 0) waiter->submitted -= (unsigned)count;
    return count < 0 ? -1 : 0;
}

int shim_waiter_take(shim_waiter *waiter, uint64_t *key, int *result) {
    uint32_t head = *waiter->completionHead;
    if (head == __atomic_load_n(waiter->completionTail, __ATOMIC_ACQUIRE)) return 0;
    struct io_uring_cqe *completion = (struct io_uring_cqe *)waiter->completions + (head & waiter->completionMask);
    *key = completion->user_data;
    *result = completion->res;
    __atomic_store_n(waiter->completionHead, head + 1, __ATOMIC_RELEASE);
    return 1;
}
