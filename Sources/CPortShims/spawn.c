/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the swift-message-port authors
 *
 * Starts a program with exactly the descriptors that are passed to it. posix_spawn(3) would do, but the features that
 * are needed here, a directory and "close all others", came to the C libraries late, and to some not at all.
 *
 * The child of vfork(2) runs in this memory and on this stack, so it only makes system calls: it allocates nothing,
 * takes no lock, and changes nothing that the parent reads but `shares_memory`. Signals are blocked meanwhile: a
 * handler of the program would run in the child, with the parent's memory. Through a pipe, which the start of the
 * program closes, the child reports why it could not start it.
 *
 * vfork returns in the parent once the child has started the program or ended, so any report of the child is in the
 * pipe by then, and reading does not wait. Waiting for the pipe's end would depend on which other processes have a copy
 * of it: one that another thread forks in between. Where vfork is fork, as under the thread sanitizer, in an emulator
 * or with musl on some processors, the parent has to wait for the pipe. It detects that case because the child's write
 * to `shares_memory` does not reach it. */
#define _GNU_SOURCE
#include "CPortShims.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* Some headers are older than the constant; the number is the same on every machine. */
#define SYSTEM_CALL_CLOSE_RANGE 436 /* Linux 5.9 */

/* The entries that getdents64(2) returns. */
struct entry {
    uint64_t inode;
    int64_t offset;
    unsigned short size;
    unsigned char kind;
    char name[];
};

struct program {
    const char *path, *directory;
    char *const *arguments, *const *environment;
    const int *descriptors;
    int descriptorCount;
};

/* The kernel's default limit: fs.nr_open. */
enum { highest_without_list = 1 << 20 };

/* Without close_range: closes what /proc lists; without /proc, every number. */
static void close_one_by_one(int lowest, int kept) {
    /* Frees a descriptor for the list, in case this process is at its limit. */
    close(lowest == kept ? lowest + 1 : lowest);
    int list = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (list >= 0) {
        _Alignas(struct entry) char bytes[2048];
        long count;
        while ((count = syscall(SYS_getdents64, list, bytes, sizeof bytes)) > 0)
            for (long at = 0; at < count; at += ((struct entry *)(void *)(bytes + at))->size) {
                const char *digit = ((struct entry *)(void *)(bytes + at))->name;
                int number = 0;
                if (*digit < '0' || *digit > '9') continue;
                while (*digit >= '0' && *digit <= '9') number = number * 10 + *digit++ - '0';
                if (number >= lowest && number != kept && number != list) close(number);
            }
        close(list);
        if (count == 0) return;
    }
    struct rlimit limit;
    int end = highest_without_list;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < (rlim_t)end) end = (int)limit.rlim_cur;
    for (int number = lowest; number < end; number++)
        if (number != kept) close(number);
}

/* Set in a child, whose memory is the parent's. */
static atomic_bool is_close_range_refused;

static void close_from(int lowest, int kept) {
    /* A filter may refuse the call with any error. */
    if (!atomic_load_explicit(&is_close_range_refused, memory_order_relaxed)
        && (kept == lowest || syscall(SYSTEM_CALL_CLOSE_RANGE, lowest, kept - 1, 0) == 0)
        && syscall(SYSTEM_CALL_CLOSE_RANGE, kept + 1, ~0u, 0) == 0) return;
    atomic_store_explicit(&is_close_range_refused, true, memory_order_relaxed);
    close_one_by_one(lowest, kept);
}

/* In the child. Returns the error number of the failed call. */
static int start(const struct program *program, int report) {
    /* All zeros is SIG_DFL, wherever the fields are. A direct system call, because the C library refuses to change the
     * two signals that it reserves for itself, and they may have been inherited ignored. */
    const uint64_t usual[8] = {0};
    for (int number = 1; number <= 64; number++) syscall(SYS_rt_sigaction, number, usual, NULL, sizeof(uint64_t));
    for (int number = 0; number < program->descriptorCount; number++) {
        int descriptor = program->descriptors[number], result;
        if (descriptor < 0) continue;
        while ((result = dup2(descriptor, number)) < 0 && (errno == EINTR || errno == EBUSY)) {}
        if (result < 0) return errno;
    }
    if (program->directory && chdir(program->directory) != 0) return errno;
    close_from(program->descriptorCount, report);
    sigset_t none;
    sigemptyset(&none);
    if (sigprocmask(SIG_SETMASK, &none, NULL) != 0) return errno;
    execve(program->path, program->arguments, program->environment);
    return errno;
}

int shim_spawn(const char *path, char *const *arguments, char *const *environment, const char *directory,
               const int *descriptors, int descriptorCount) {
    const struct program program = {path, directory, arguments, environment, descriptors, descriptorCount};
    int ends[2], error = 0;
    sigset_t all, before;
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    /* Above the child's numbers. */
    int report = shim_dup_cloexec(ends[1], descriptorCount);
    if (report < 0) error = errno;
    close(ends[1]);
    if (report < 0) {
        close(ends[0]);
        errno = error;
        return -1;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    volatile int shares_memory = 0;
    pid_t process = vfork();
    if (process == 0) {
        shares_memory = 1;
        int code = start(&program, report);
        syscall(SYS_write, report, &code, sizeof code);
        /* Without the program's exit handlers. */
        for (;;) syscall(SYS_exit_group, 127);
    }
    if (process < 0) error = errno;
    close(report);
    if (process > 0) {
        struct pollfd end = {.fd = ends[0], .events = POLLIN};
        while (!shares_memory && poll(&end, 1, -1) < 0 && errno == EINTR) {}
        long count;
        while ((count = read(ends[0], &error, sizeof error)) < 0 && errno == EINTR) {}
        if (count != sizeof error) error = 0;
        /* It has not become the program: reap it, so that no other code sees it. */
        else while (waitpid(process, NULL, 0) < 0 && errno == EINTR) {}
    }
    close(ends[0]);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return error == 0 ? process : -1;
}
