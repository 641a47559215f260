// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Messages between two processes over bare Unix sockets, each side waiting in epoll.

#include "common.h"
#include <sys/epoll.h>
#include <sys/socket.h>

int bare_socket_pair(bare_socket_kind kind, int ends[2]) {
    return socketpair(AF_UNIX, (kind == bare_packets ? SOCK_SEQPACKET : SOCK_STREAM) | SOCK_CLOEXEC, 0, ends);
}

/// The set in which a side waits: one with the socket, or, like a run loop that serves a port with sockets of its own,
/// one with that set.
typedef struct watch {
    int inner;
    int outer;
} watch;

static int set_of(int descriptor) {
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event);
    return set;
}

static watch begin_watch(int descriptor, int nested) {
    int inner = set_of(descriptor);
    return (watch){inner, nested ? set_of(inner) : -1};
}

static void end_watch(watch sets) {
    close(sets.inner);
    if (sets.outer >= 0) close(sets.outer);
}

static void wait_in(watch sets) {
    struct epoll_event event;
    if (sets.outer < 0) {
        while (epoll_wait(sets.inner, &event, 1, -1) < 1) {}
        return;
    }
    while (epoll_wait(sets.outer, &event, 1, -1) < 1) {}
    while (epoll_wait(sets.inner, &event, 1, 0) < 0) {}
}

static void send_all(int descriptor, const char *bytes, size_t size) {
    while (size > 0) {
        ssize_t sent = send(descriptor, bytes, size, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) return;
        if (sent > 0) bytes += sent, size -= (size_t)sent;
    }
}

/// Returns whether all came, waiting in epoll before each read.
static int receive_all(int descriptor, watch sets, char *bytes, size_t size) {
    while (size > 0) {
        wait_in(sets);
        ssize_t got = recv(descriptor, bytes, size, 0);
        if (got == 0 || (got < 0 && errno != EINTR)) return 0;
        if (got > 0) bytes += got, size -= (size_t)got;
    }
    // A receiver that is fair to other sockets checks whether this one is empty.
    char rest;
    if (sets.outer >= 0 && recv(descriptor, &rest, 1, MSG_DONTWAIT | MSG_PEEK) == 0) return 0;
    return 1;
}

static char *filled(size_t size) {
    char *bytes = malloc(size + 1);
    if (bytes) memset(bytes, 7, size + 1);
    return bytes;
}

int64_t bare_socket_run(int descriptor, int nested, size_t there, size_t back, int64_t count, int64_t *laps) {
    watch sets = begin_watch(descriptor, nested);
    char *out = filled(there), *in = filled(back);
    int64_t start = bare_now(), last = start, done = 0;
    for (; done < count; done++) {
        send_all(descriptor, out, there);
        if (!receive_all(descriptor, sets, in, back)) break;
        bare_end_lap(laps, done, &last);
    }
    int64_t time = done == count ? bare_now() - start : -1;
    free(out);
    free(in);
    end_watch(sets);
    return time;
}

void bare_socket_answer(int descriptor, int nested, size_t there, size_t back) {
    watch sets = begin_watch(descriptor, nested);
    char *in = filled(there), *out = filled(back);
    while (receive_all(descriptor, sets, in, there)) send_all(descriptor, out, back);
    free(in);
    free(out);
    end_watch(sets);
}

int64_t bare_copy_run(size_t size, int64_t count, int64_t *laps) {
    char *from = filled(size), *to = filled(size);
    int64_t start = bare_now(), last = start;
    for (int64_t i = 0; i < count; i++) {
        memcpy(to, from, size);
        __asm__ volatile("" : : "r"(to) : "memory");
        bare_end_lap(laps, i, &last);
    }
    int64_t time = bare_now() - start;
    free(from);
    free(to);
    return time;
}
