// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Counts the system calls of this process with an event of the kernel: nothing is stopped, so the program runs at full
// speed. It needs the file system of the kernel's trace points, and the right to use them.

#include "common.h"
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

static int counter = -1;

static long long event_number(void) {
    const char *const paths[] = {
        "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id",
        "/sys/kernel/debug/tracing/events/raw_syscalls/sys_enter/id",
    };
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(paths[i], "re");
        if (!file) continue;
        long long number = -1;
        int fields = fscanf(file, "%lld", &number);
        fclose(file);
        if (fields == 1) return number;
    }
    return -1;
}

int bare_counter_open(void) {
    long long number = event_number();
    if (number < 0) return 0;
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_TRACEPOINT,
        .size = sizeof attributes,
        .config = (uint64_t)number,
        .disabled = 1,
        // Counts new threads, and not the processes that these start.
        .inherit = 1,
        .inherit_thread = 1,
    };
    counter = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return counter >= 0;
}

void bare_counter_begin(void) {
    ioctl(counter, PERF_EVENT_IOC_RESET, 0);
    ioctl(counter, PERF_EVENT_IOC_ENABLE, 0);
}

int64_t bare_counter_end(void) {
    ioctl(counter, PERF_EVENT_IOC_DISABLE, 0);
    int64_t value = 0;
    return read(counter, &value, sizeof value) == sizeof value ? value : -1;
}
