// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Packets of client processes over many connections, which a process has in one epoll set. Each client has up to a
// hundred of them. The clients send one after the other, a thousand packets each, to all their connections in turn.

#include "common.h"
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <signal.h>

enum { message = 64, group = 100, turn = 1000, reports = 64 };

/// The next order: a socket to send over, or how many packets to send. Returns 0 at the end.
static int take_order(int control, int64_t *count, int *descriptor) {
    char room[CMSG_SPACE(sizeof(int))];
    struct iovec vector = {.iov_base = count, .iov_len = sizeof *count};
    struct msghdr header = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    ssize_t size;
    while ((size = recvmsg(control, &header, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {}
    if (size != sizeof *count || header.msg_flags & MSG_CTRUNC) return 0;
    struct cmsghdr *part = CMSG_FIRSTHDR(&header);
    *descriptor = -1;
    if (part && part->cmsg_type == SCM_RIGHTS) memcpy(descriptor, CMSG_DATA(part), sizeof(int));
    return 1;
}

static int give_order(int control, int64_t count, int descriptor) {
    char room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec vector = {.iov_base = &count, .iov_len = sizeof count};
    struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1};
    if (descriptor >= 0) {
        header.msg_control = room;
        header.msg_controllen = sizeof room;
        struct cmsghdr *part = CMSG_FIRSTHDR(&header);
        *part = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(part), &descriptor, sizeof(int));
    }
    ssize_t size;
    while ((size = sendmsg(control, &header, MSG_NOSIGNAL)) < 0 && errno == EINTR) {}
    return size == sizeof count;
}

static void send_over_all(int socket) {
    // Closes the inherited descriptors, so that the end of the server is visible.
    int control = dup2(socket, 3);
    if (control < 0 || syscall(SYS_close_range, 4, ~0U, 0) != 0) return;
    char bytes[message] = {7};
    int ends[group], known = 0, descriptor;
    int64_t count, sent = 0;
    while (take_order(control, &count, &descriptor)) {
        if (descriptor >= 0) {
            if (known < group) ends[known++] = descriptor;
            continue;
        }
        for (; count > 0; count--, sent++) {
            if (send(ends[sent % known], bytes, message, MSG_NOSIGNAL) < 0 && errno != EINTR) return;
        }
    }
}

/// Starts a client. Returns the socket over which it takes orders, or -1.
static int start_client(void) {
    int pair[2];
    if (bare_socket_pair(bare_packets, pair) != 0) return -1;
    pid_t server = getpid(), client = fork();
    if (client == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == server) send_over_all(pair[1]);
        _exit(0);
    }
    close(pair[1]);
    return client > 0 ? pair[0] : -1;
}

/// Makes a connection of the client.
static int connect_one(int set, int control) {
    int pair[2];
    if (bare_socket_pair(bare_packets, pair) != 0) return 0;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = pair[0]};
    int done = epoll_ctl(set, EPOLL_CTL_ADD, pair[0], &event) == 0 && give_order(control, 0, pair[1]);
    close(pair[1]);
    return done;
}

static int receive(int set, int64_t count) {
    struct epoll_event events[reports];
    char bytes[message];
    while (count > 0) {
        int ready = epoll_wait(set, events, reports, -1);
        for (int index = 0; index < ready; index++) {
            ssize_t size = recv(events[index].data.fd, bytes, message, MSG_DONTWAIT);
            if (size == 0) return 0;
            if (size > 0) count--;
        }
    }
    return 1;
}

void bare_socket_field_serve(int socket, int count) {
    int each = count < group ? count : group, number = count / each, set = epoll_create1(EPOLL_CLOEXEC), made = 0;
    int *controls = calloc((size_t)number, sizeof *controls);
    // Before there are connections, which a client would inherit.
    for (int client = 0; client < number; client++) controls[client] = start_client();
    while (made < count && connect_one(set, controls[made / each])) made++;
    int64_t report = made == count ? 0 : errno, total, next = 0;
    int descriptor;
    while (send(socket, &report, sizeof report, MSG_NOSIGNAL) == sizeof report
           && take_order(socket, &total, &descriptor)) {
        int64_t start = bare_now();
        for (int64_t left = total; left > 0; left -= turn, next++) {
            int64_t some = left < turn ? left : turn;
            if (!give_order(controls[next % number], some, -1) || !receive(set, some)) return;
        }
        report = bare_now() - start;
    }
}
