/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the swift-message-port authors */
#define _GNU_SOURCE
#include "CPortShims.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

int shim_futex_wait(const void *word, unsigned expected, int64_t limit) {
    struct timespec time = {.tv_sec = limit / 1000000000, .tv_nsec = limit % 1000000000};
    const struct timespec *end = limit == INT64_MAX ? NULL : &time;
    return (int)syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected, end, NULL, FUTEX_BITSET_MATCH_ANY);
}

int shim_futex_wake(void *word) { return (int)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1); }

uintptr_t shim_this_thread(void) { return (uintptr_t)pthread_self(); }

int shim_start_thread(uintptr_t *thread, size_t stackSize, void *(*body)(void *), void *argument) {
    pthread_attr_t attributes;
    pthread_t started;
    int error = pthread_attr_init(&attributes);
    if (error) return error;
    if (stackSize > 0) error = pthread_attr_setstacksize(&attributes, stackSize);
    if (!error) error = pthread_create(&started, &attributes, body, argument);
    pthread_attr_destroy(&attributes);
    if (!error) *thread = (uintptr_t)started;
    return error;
}

int shim_join_thread(uintptr_t thread) { return pthread_join((pthread_t)thread, NULL); }

int shim_detach_thread(uintptr_t thread) { return pthread_detach((pthread_t)thread); }

int shim_thread_id(void) { return (int)syscall(SYS_gettid); }

/* Whether the kernel keeps the processor's number in the thread's memory: rseq(2), as glibc 2.35 or later registers it. */
static _Bool knows_processor;

__attribute__((constructor)) static void ask_about_processor(void) {
    const unsigned int *size = dlsym(RTLD_DEFAULT, "__rseq_size");
    knows_processor = size && *size;
}

int shim_processor(void) { return knows_processor ? sched_getcpu() : -1; }

int shim_allowed_processor_count(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : -1;
}

int shim_name_thread(const char *name) { return pthread_setname_np(pthread_self(), name); }

unsigned shim_forks;

static void count_fork(void) { shim_forks++; }

/* The C library calls count_fork in each new child, before fork returns there: no other thread exists then. */
__attribute__((constructor)) static void register_count(void) { pthread_atfork(NULL, NULL, count_fork); }

_Thread_local void *shim_thread_pointer;
_Thread_local unsigned shim_held_locks;
_Thread_local _Bool shim_callouts_wait;

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define IS_SANITIZED
#endif
#endif

_Bool shim_pools_memory(void) {
#ifdef IS_SANITIZED
    return 0;
#else
    return 1;
#endif
}

char **shim_environment(void) { return environ; }

const char *shim_variable(const char *name) { return secure_getenv(name); }

/* Linux 5.3, 5.1 and 5.4. The C library has names for them only since 2.36; the numbers are the same on every
 * machine. */
#define SYSTEM_CALL_PIDFD_OPEN 434
#define SYSTEM_CALL_PIDFD_SEND_SIGNAL 424
#define ID_IS_PIDFD 3

int shim_pidfd_open(int process) { return (int)syscall(SYSTEM_CALL_PIDFD_OPEN, process, 0); }

int shim_pidfd_send_signal(int process, int signal) {
    return (int)syscall(SYSTEM_CALL_PIDFD_SEND_SIGNAL, process, signal, NULL, 0);
}

int shim_wait_for_child(int descriptor, int process, _Bool keeps, _Bool blocks, int *ended, int *code, int *status) {
    siginfo_t information = {.si_pid = 0};
    int options = WEXITED | (blocks ? 0 : WNOHANG) | (keeps ? WNOWAIT : 0);
    idtype_t kind = descriptor < 0 ? P_PID : (idtype_t)ID_IS_PIDFD;
    int result = waitid(kind, (id_t)(descriptor < 0 ? process : descriptor), &information, options);
    *ended = information.si_pid;
    *code = information.si_code;
    *status = information.si_status;
    return result;
}

const int SHIM_CLD_EXITED = CLD_EXITED;

void shim_kernel_release(char *text, int capacity) {
    struct utsname system;
    snprintf(text, (size_t)capacity, "%s", uname(&system) == 0 ? system.release : "unknown");
}

void shim_library_version(char *text, int capacity) {
#ifdef __GLIBC__
    snprintf(text, (size_t)capacity, "glibc %s", gnu_get_libc_version());
#else
    snprintf(text, (size_t)capacity, "not glibc, so it does not say its version");
#endif
}

/* Linux 5.9. The C library has a name for it only since 2.34; the number is the same on every machine. */
#define SYSTEM_CALL_CLOSE_RANGE 436

int shim_close_no_range(void) { return (int)syscall(SYSTEM_CALL_CLOSE_RANGE, UINT_MAX, UINT_MAX, 0); }

void shim_handle_signal(int signal, void (*handler)(int signal, void *information, void *context)) {
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART};
    action.sa_sigaction = (void (*)(int, siginfo_t *, void *))(void *)handler;
    sigaction(signal, &action, NULL);
}

int shim_process_end(int process, int *status) {
    struct { /* struct pidfd_info of linux/pidfd.h, in its first form */
        uint64_t mask, group;
        uint32_t ids[11];
        int32_t status;
    } information = { .mask = 1 << 3 /* PIDFD_INFO_EXIT, since Linux 6.15 */ };
    int result = ioctl(process, _IOC(_IOC_READ | _IOC_WRITE, 0xFF, 11, sizeof information), &information);
    if (result == 0 && !(information.mask & (1 << 3))) { errno = ENODATA; result = -1; }
    *status = information.status;
    return result;
}
