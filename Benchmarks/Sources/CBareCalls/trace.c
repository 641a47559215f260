// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Counts the system calls of a child process with ptrace. The child marks the stretch that counts with a system call
// that no kernel has. The process stops twice at each call, so its times say nothing; its counts do.

#include "common.h"
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { mark = 0xB0B0, beginning = 1, end = 2 };

void bare_calls_begin(void) { syscall(mark, beginning, 0); }

void bare_calls_end(int64_t messages) { syscall(mark, end, messages); }

typedef struct tracing {
    int counts;
    int isDone;
    bare_call_count *result;
} tracing;

static void note_stop(tracing *state, pid_t thread) {
    struct __ptrace_syscall_info info;
    long size = ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info);
    if (size <= 0 || info.op != PTRACE_SYSCALL_INFO_ENTRY) return;
    if (info.entry.nr != mark) {
        state->result->calls += state->counts;
    } else if (info.entry.args[0] == beginning) {
        state->counts = 1;
        state->result->calls = 0;
    } else if (state->counts) {
        state->counts = 0;
        state->isDone = 1;
        state->result->messages = (int64_t)info.entry.args[1];
    }
}

/// The signal to deliver to a stopped thread, when a signal stopped it.
static int signal_of(int status) {
    int number = WSTOPSIG(status);
    if (status >> 16 != 0 || number == (SIGTRAP | 0x80) || number == SIGSTOP || number == SIGTRAP) return 0;
    return number;
}

static int follow(pid_t child, tracing *state) {
    while (1) {
        int status;
        pid_t thread = waitpid(-1, &status, __WALL | __WNOTHREAD);
        if (thread < 0 && errno == EINTR) continue;
        if (thread < 0) return errno;
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (thread == child) return state->isDone ? 0 : ECHILD;
            continue;
        }
        if (!WIFSTOPPED(status)) continue;
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) note_stop(state, thread);
        ptrace(PTRACE_SYSCALL, thread, 0, signal_of(status));
    }
}

int bare_calls_trace(char *const *arguments, bare_call_count *result) {
    tracing state = {.result = result};
    *result = (bare_call_count){0};
    pid_t child = fork();
    if (child < 0) return errno;
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) _exit(126);
        raise(SIGSTOP);
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    int status;
    if (waitpid(child, &status, 0) != child) return errno;
    if (!WIFSTOPPED(status)) return EPERM;
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SETOPTIONS, child, 0, options) != 0 || ptrace(PTRACE_SYSCALL, child, 0, 0) != 0) {
        int code = errno;
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        return code;
    }
    return follow(child, &state);
}
