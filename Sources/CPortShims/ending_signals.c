// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Passes the signals that end a process to a thread that has something to do first. A signal that was sent to the
// process is only passed on: the interrupted thread may hold any lock, and continues until the notified thread has sent
// the signal again. A thread whose own instruction raised the signal cannot continue: it waits, but not indefinitely,
// because the other thread may need its locks. Then the handler that was installed before, such as the one that prints
// a backtrace, gets the signal.

#include "CPortShims.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// The thread sanitizer calls the handler of a fault at once, even when the signal was sent, and so perhaps while the
// thread holds one of the sanitizer's own locks. So the code that runs there is not instrumented, and its calls bypass
// the sanitizer.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNINSTRUMENTED __attribute__((disable_sanitizer_instrumentation))
#endif
#endif
#ifndef UNINSTRUMENTED
#define UNINSTRUMENTED
#endif

enum { limit_in_milliseconds = 10000 };

static int reports = -1, done = -1, answering = -1;
static pid_t process;

static const int outer[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const int faults[] = {SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGBUS, SIGFPE};
enum { fault_count = sizeof faults / sizeof *faults, outer_count = sizeof outer / sizeof *outer };
static struct sigaction before[fault_count];

enum { waits = 0x80 };

UNINSTRUMENTED static int report(int number) {
    unsigned char byte = (unsigned char)number;
    // In a forked child no thread reads the pipe.
    return getpid() == process && syscall(SYS_write, reports, &byte, 1) == 1;
}

static void signal_came(int number) {
    int code = errno;
    if (!report(number)) {
        signal(number, SIG_DFL);
        raise(number);
    }
    errno = code;
}

static long milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Other signals that arrive at the thread meanwhile do not end the wait. */
static void wait_for_answer(void) {
    struct pollfd end = {done, POLLIN, 0};
    long deadline = milliseconds() + limit_in_milliseconds, rest = limit_in_milliseconds;
    while (rest > 0 && poll(&end, 1, (int)rest) < 0 && errno == EINTR) rest = deadline - milliseconds();
}

static void leave_to_program(int number) {
    for (int index = 0; index < fault_count; index++)
        if (faults[index] == number) sigaction(number, &before[index], NULL);
    for (int index = 0; index < outer_count; index++)
        if (outer[index] == number) signal(number, SIG_DFL);
}

UNINSTRUMENTED static void fault_came(int number, siginfo_t *information, void *context) {
    (void)context;
    int code = errno;
    // One that a process has sent can arrive at any moment, like those above.
    if (information->si_code != SI_USER || !report(number)) {
        if (information->si_code != SI_USER && report(number | waits)) wait_for_answer();
        leave_to_program(number);
        // A faulting instruction is executed again when this returns; a signal that was sent is sent again.
        if (information->si_code <= 0 || number == SIGTRAP) raise(number);
    }
    errno = code;
}

void shim_report_ending_signals(const int ends[4]) {
    reports = ends[1];
    done = ends[2];
    answering = ends[3];
    process = getpid();
    struct sigaction ours = {.sa_handler = signal_came, .sa_flags = SA_RESTART};
    for (int index = 0; index < outer_count; index++) {
        struct sigaction old;
        // The program's own handling of a signal is preserved.
        if (sigaction(outer[index], NULL, &old) != 0 || old.sa_handler != SIG_DFL) continue;
        sigaction(outer[index], &ours, NULL);
    }
    struct sigaction fault = {.sa_sigaction = fault_came, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (int index = 0; index < fault_count; index++) {
        if (sigaction(faults[index], NULL, &before[index]) == 0 && before[index].sa_handler != SIG_IGN)
            sigaction(faults[index], &fault, NULL);
    }
}

void shim_end_by_signal(int byte) {
    int number = byte & ~waits;
    if (byte & waits) {
        unsigned char answer = 1;
        if (write(answering, &answer, 1) == 1) return;
    }
    leave_to_program(number);
    kill(getpid(), number);
}
