/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the swift-message-port authors
 *
 * CPortShims at work, for C libraries and processors for which there is no Swift here: see Tests/portable. It ends with
 * zero when each call did what the libraries count on.
 *
 *   PortableShims [interpreter]    what runs programs of this processor, where the kernel does not */
#define _GNU_SOURCE
#include "CPortShims.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* libdispatch is Swift's: nothing here calls them. */
int _dispatch_get_main_queue_handle_4CF(void) { abort(); }
void _dispatch_main_queue_callback_4CF(void *ignored) { (void)ignored; abort(); }

static int failures;

static void expect(int line, int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "PortableShims.c:%d: %s does not hold (errno %d)\n", line, what, errno);
    failures++;
}
#define EXPECT(...) expect(__LINE__, (__VA_ARGS__), #__VA_ARGS__)

static int status_of(int process) {
    int status = -1;
    return waitpid(process, &status, 0) == process ? status : -1;
}

/* Starts this program again, with what the child checks as its arguments. */
static void spawns(char *self, char *interpreter) {
    char *const direct[] = {self, "child", NULL}, *const indirect[] = {interpreter, self, "child", NULL};
    char *const *arguments = interpreter ? indirect : direct;
    char *const environment[] = {"PROBE=1", NULL};
    int null = open("/dev/null", O_RDWR), stray = dup2(null, 200);
    int high = fcntl(null, F_DUPFD_CLOEXEC, 10);
    const int descriptors[] = {high, high, -1};
    sigset_t blocked, before, now;
    sigfillset(&blocked);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    signal(SIGUSR1, SIG_IGN);
    int process = shim_spawn(arguments[0], arguments, environment, "/", descriptors, 3);
    sigprocmask(SIG_SETMASK, &before, &now);
    EXPECT(sigismember(&now, SIGUSR2) == 1);
    EXPECT(process > 0);
    EXPECT(status_of(process) == 0);
    /* Why it could not be started, and no child. */
    errno = 0;
    EXPECT(shim_spawn("/nowhere", arguments, environment, NULL, descriptors, 3) == -1 && errno == ENOENT);
    errno = 0;
    EXPECT(shim_spawn(arguments[0], arguments, environment, "/nowhere", descriptors, 3) == -1 && errno == ENOENT);
    errno = 0;
    EXPECT(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    close(null), close(stray), close(high);
}

static int child(void) {
    sigset_t blocked;
    struct sigaction action;
    struct stat null, status;
    char directory[64] = "";
    EXPECT(sigprocmask(SIG_BLOCK, NULL, &blocked) == 0);
    for (int number = 1; number < 32; number++) {
        EXPECT(sigismember(&blocked, number) == 0);
        EXPECT(sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
    }
    EXPECT(stat("/dev/null", &null) == 0);
    for (int number = 0; number < 2; number++)
        EXPECT(fstat(number, &status) == 0 && status.st_rdev == null.st_rdev);
    EXPECT(fcntl(2, F_GETFD) == 0);
    for (int number = 3; number < 1024; number++) EXPECT(fcntl(number, F_GETFD) == -1);
    EXPECT(getcwd(directory, sizeof directory) && strcmp(directory, "/") == 0);
    EXPECT(getenv("PROBE") && strcmp(getenv("PROBE"), "1") == 0);
    return failures != 0;
}

/* In milliseconds where the kernel, or an emulator, has no finer call. */
static int wait_for(int epoll, shim_epoll_record *record, int64_t nanoseconds) {
    int count = shim_epoll_wait(epoll, record, 1, nanoseconds);
    if (count >= 0 || errno != ENOSYS) return count;
    struct epoll_event event;
    count = epoll_wait(epoll, &event, 1, nanoseconds < 0 ? -1 : 1);
    if (count == 1) *record = (shim_epoll_record){event.events, event.data.u64};
    return count;
}

static void packets(void) {
    int ends[2], memory = open("/dev/zero", O_RDONLY), count, flags, got[4];
    char head[8], body[8];
    EXPECT(socketpair(AF_UNIX, SHIM_SOCK_SEQPACKET | SHIM_SOCK_CLOEXEC | SHIM_SOCK_NONBLOCK, 0, ends) == 0);
    const int sent[] = {memory, ends[0]};
    EXPECT(shim_send(ends[0], "head", 4, "bo", 2, "dy", 2, sent, 2) == 8);
    int epoll = shim_epoll_create();
    shim_epoll_record record;
    EXPECT(shim_epoll_ctl(epoll, SHIM_EPOLL_CTL_ADD, ends[1], SHIM_EPOLLIN, 0x123456789abcdef0) == 0);
    EXPECT(wait_for(epoll, &record, -1) == 1);
    EXPECT((record.events & SHIM_EPOLLIN) != 0 && record.data == 0x123456789abcdef0);
    EXPECT(shim_receive(ends[1], head, 4, body, 8, got, 4, &count, &flags) == 8);
    EXPECT(count == 2 && memcmp(head, "head", 4) == 0 && memcmp(body, "body", 4) == 0);
    EXPECT((flags & (SHIM_MSG_TRUNC | SHIM_MSG_CTRUNC)) == 0);
    EXPECT((fcntl(got[0], F_GETFD) & FD_CLOEXEC) != 0 && read(got[0], head, 1) == 1 && head[0] == 0);
    EXPECT(wait_for(epoll, &record, 300000) == 0);
    int process;
    unsigned user, group;
    EXPECT(shim_peer_credentials(ends[0], &process, &user, &group) == 0 && process == getpid() && user == getuid());
    EXPECT(shim_peek(ends[1], head, 8) == -1 && errno == EAGAIN);
    EXPECT(shim_shut_down_and_peek(ends[1]) == 0);
    close(epoll), close(ends[0]), close(ends[1]), close(got[0]), close(got[1]), close(memory);
}

static void *run(void *argument) {
    *(uintptr_t *)argument = shim_this_thread();
    return NULL;
}

static void threads(void) {
    uintptr_t thread, seen = 0;
    EXPECT(shim_start_thread(&thread, 1 << 20, run, &seen) == 0);
    EXPECT(shim_join_thread(thread) == 0 && seen == thread && seen != shim_this_thread());
    EXPECT(shim_start_thread(&thread, 1, run, &seen) == EINVAL);
    EXPECT(shim_name_thread("shims") == 0 && shim_thread_id() == getpid());
}

static void copies(void) {
    static _Alignas(64) unsigned char from[20000], past[20000], ahead[20000];
    for (size_t index = 0; index < sizeof from; index++) from[index] = (unsigned char)(index * 31 >> 3);
    for (size_t start = 0; start < 70; start += 7)
        for (size_t size = 0; size + start < sizeof from; size = size * 2 + 1) {
            memset(past, 0xff, sizeof past), memset(ahead, 0xff, sizeof ahead);
            shim_copy_non_temporally(past + start, from + start / 2, size);
            shim_copy_prefetching(ahead + start, from + start / 2, size);
            EXPECT(memcmp(past + start, from + start / 2, size) == 0 && past[start + size] == 0xff);
            EXPECT(memcmp(ahead + start, from + start / 2, size) == 0 && ahead[start + size] == 0xff);
        }
    shim_prefetch(from), shim_prefetch_to_read(from), shim_pause();
}

static void files(void) {
    char path[] = "/tmp/port-shims-XXXXXX";
    EXPECT(mkdtemp(path) != NULL);
    int directory = open(path, O_RDONLY | O_DIRECTORY), held = 0;
    int first = shim_openat(directory, "first", O_RDWR | O_CREAT, 0600);
    int again = shim_openat(directory, "first", O_RDWR, 0), second = shim_openat(directory, "second", O_RDWR | O_CREAT, 0600);
    EXPECT(shim_rename_noreplace(directory, "first", "second") == -1 && errno == EEXIST);
    EXPECT(shim_rename_noreplace(directory, "first", "third") == 0);
    EXPECT(shim_lock_exclusive(first) == 0 && shim_lock_exclusive(again) == -1 && errno == EAGAIN);
    EXPECT(shim_lock_is_held(again, &held) == 0 && held);
    EXPECT(shim_unlock(first) == 0 && shim_lock_is_held(again, &held) == 0 && !held);
    close(first), close(again), close(second);
    unlinkat(directory, "second", 0), unlinkat(directory, "third", 0), close(directory), rmdir(path);
}

/* From now on close_range is refused. */
static int refuse_close_range(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 436, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "child") == 0) return child();
    char self[4096];
    char *interpreter = count > 1 ? arguments[1] : NULL;
    if (!realpath(arguments[0], self)) return 2;
    packets(), threads(), copies(), files(), spawns(self, interpreter);
    int refused = refuse_close_range();
    if (refused) spawns(self, interpreter);
    printf("CPortShims: %d failures%s\n", failures, refused ? "" : " (without a filter: not tried without close_range)");
    return failures != 0;
}
