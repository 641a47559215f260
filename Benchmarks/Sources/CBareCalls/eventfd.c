// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Two threads that wake each other with an eventfd each, waiting in epoll: the lower bound for two run loops that
// sleep.

#include "common.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>

typedef struct side {
    int bell;
    int set;
} side;

struct bare_eventfd_pair {
    side near, far;
    pthread_t thread;
    int ends;
};

static int side_open(side *made) {
    made->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    made->set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    if (made->bell < 0 || made->set < 0) return -1;
    return epoll_ctl(made->set, EPOLL_CTL_ADD, made->bell, &event);
}

static void side_close(side *made) {
    close(made->bell);
    close(made->set);
}

static void wait_for(side *own) {
    struct epoll_event event;
    while (epoll_wait(own->set, &event, 1, -1) < 1) {}
    bare_silence(own->bell);
}

static void *answer(void *context) {
    bare_eventfd_pair *pair = context;
    while (1) {
        wait_for(&pair->far);
        if (__atomic_load_n(&pair->ends, __ATOMIC_ACQUIRE)) return NULL;
        bare_ring(pair->near.bell);
    }
}

bare_eventfd_pair *bare_eventfd_start(int place) {
    bare_eventfd_pair *pair = calloc(1, sizeof *pair);
    if (!pair) return NULL;
    if (side_open(&pair->near) == 0 && side_open(&pair->far) == 0
        && pthread_create(&pair->thread, NULL, answer, pair) == 0) {
        if (bare_bind_thread(pair->thread, place) == 0) return pair;
        bare_eventfd_end(pair);
        return NULL;
    }
    free(pair);
    return NULL;
}

int64_t bare_eventfd_run(bare_eventfd_pair *pair, int64_t count, int64_t *laps) {
    int64_t start = bare_now(), last = start;
    for (int64_t i = 0; i < count; i++) {
        bare_ring(pair->far.bell);
        wait_for(&pair->near);
        bare_end_lap(laps, i, &last);
    }
    return bare_now() - start;
}

void bare_eventfd_end(bare_eventfd_pair *pair) {
    __atomic_store_n(&pair->ends, 1, __ATOMIC_RELEASE);
    bare_ring(pair->far.bell);
    pthread_join(pair->thread, NULL);
    side_close(&pair->near);
    side_close(&pair->far);
    free(pair);
}

void bare_wait_readable(int descriptor) {
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event);
    while (epoll_wait(set, &event, 1, -1) < 1) {}
    close(set);
}

int bare_make_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

void bare_ring(int descriptor) {
    uint64_t one = 1;
    while (write(descriptor, &one, sizeof one) < 0 && errno == EINTR) {}
}

void bare_silence(int descriptor) {
    uint64_t value;
    while (read(descriptor, &value, sizeof value) < 0 && errno == EINTR) {}
}
