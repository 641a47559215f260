// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Packets one way. The first says how many follow, and one answer says that they have arrived.

#include "common.h"
#include <sys/epoll.h>
#include <sys/socket.h>

enum { most = 64, largest = 4096 };

static char packets[most][largest];

static unsigned prepare(struct mmsghdr *headers, struct iovec *vectors, size_t size, unsigned batch) {
    if (batch > most) batch = most;
    for (unsigned i = 0; i < most; i++) {
        vectors[i] = (struct iovec){.iov_base = packets[i], .iov_len = size};
        headers[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &vectors[i], .msg_iovlen = 1}};
    }
    return batch;
}

int64_t bare_socket_send(int descriptor, size_t size, int64_t count, unsigned batch) {
    struct mmsghdr headers[most];
    struct iovec vectors[most];
    batch = prepare(headers, vectors, size, batch);
    int64_t start = bare_now();
    send(descriptor, &count, sizeof count, MSG_NOSIGNAL);
    for (int64_t sent = 0; sent < count;) {
        if (batch <= 1) {
            if (send(descriptor, packets[0], size, MSG_NOSIGNAL) < 0 && errno != EINTR) break;
            sent++;
        } else {
            int64_t left = count - sent;
            int some = sendmmsg(descriptor, headers, left < batch ? (unsigned)left : batch, MSG_NOSIGNAL);
            if (some < 0 && errno != EINTR) break;
            if (some > 0) sent += some;
        }
    }
    recv(descriptor, &count, sizeof count, 0);
    return bare_now() - start;
}

void bare_socket_sink(int descriptor, size_t size, unsigned batch) {
    struct mmsghdr headers[most];
    struct iovec vectors[most];
    struct epoll_event event = {.events = EPOLLIN};
    batch = prepare(headers, vectors, size, batch);
    int set = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event);
    int64_t count;
    while (epoll_wait(set, &event, 1, -1) == 1 && recv(descriptor, &count, sizeof count, 0) > 0) {
        for (int64_t got = 0; got < count;) {
            int some = 1;
            if (batch <= 1) {
                // As a loop does: reads what is there, and waits in epoll when there is nothing.
                ssize_t bytes = recv(descriptor, packets[0], size, MSG_DONTWAIT);
                if (bytes == 0) return;
                if (bytes < 0) some = -1;
            } else {
                int64_t left = count - got;
                some = recvmmsg(descriptor, headers, left < batch ? (unsigned)left : batch, MSG_DONTWAIT, NULL);
            }
            if (some > 0) got += some;
            else if (some < 0 && errno == EAGAIN) epoll_wait(set, &event, 1, -1);
            else if (some < 0 && errno != EINTR) return;
        }
        send(descriptor, &count, sizeof count, MSG_NOSIGNAL);
    }
    close(set);
}
