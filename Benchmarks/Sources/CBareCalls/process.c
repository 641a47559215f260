// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#include "common.h"
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

int64_t bare_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

void bare_print_by_line(void) { setvbuf(stdout, NULL, _IOLBF, 0); }

pid_t bare_thread_id(void) { return gettid(); }

void bare_bound_life(unsigned seconds) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(seconds);
    if (getppid() == 1) _exit(1);
}

int64_t bare_allow_descriptors(uint64_t number) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
    if (limit.rlim_cur < number) {
        struct rlimit raised = {.rlim_cur = number, .rlim_max = number > limit.rlim_max ? number : limit.rlim_max};
        setrlimit(RLIMIT_NOFILE, &raised);
    }
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (int64_t)limit.rlim_cur : 0;
}

size_t bare_heap_bytes(void) {
    struct mallinfo2 now = mallinfo2();
    return now.uordblks + now.hblkhd;
}
