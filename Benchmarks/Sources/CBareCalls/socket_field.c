// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Packets of another process over many connections, which are in one epoll set: a thousand over a hundred of them, then
// as many over the next hundred.

#include "common.h"
#include <sys/epoll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { message = 64, group = 100, turn = 1000, reports = 64 };

struct bare_socket_field {
    int control;
    int set;
    int count;
    pid_t child;
    int *ends;
};

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

/// The child: system calls only, since other threads may have had locks when it was made.
static void serve(int socket, int *ends) {
    // Closes the inherited descriptors, so that the end of what the parent closes is visible.
    int control = dup2(socket, 3);
    if (control < 0 || syscall(SYS_close_range, 4, ~0U, 0) != 0) return;
    char bytes[message] = {7};
    int known = 0, descriptor;
    int64_t count, sent = 0;
    while (take_order(control, &count, &descriptor)) {
        if (descriptor >= 0) {
            ends[known++] = descriptor;
            continue;
        }
        int some = known < group ? known : group;
        for (; count > 0; count--, sent++) {
            int64_t first = sent / turn % (known / some) * some;
            if (send(ends[first + sent % some], bytes, message, MSG_NOSIGNAL) < 0 && errno != EINTR) return;
        }
    }
}

static int connect_one(bare_socket_field *field) {
    int pair[2];
    if (bare_socket_pair(bare_packets, pair) != 0) return 0;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = pair[0]};
    field->ends[field->count++] = pair[0];
    int done = epoll_ctl(field->set, EPOLL_CTL_ADD, pair[0], &event) == 0 && give_order(field->control, 0, pair[1]);
    close(pair[1]);
    return done;
}

bare_socket_field *bare_socket_field_start(int count) {
    bare_socket_field *field = calloc(1, sizeof *field);
    int *ends = calloc((size_t)count, sizeof *ends), pair[2];
    if (!field || !ends || bare_socket_pair(bare_packets, pair) != 0) {
        free(field);
        free(ends);
        return NULL;
    }
    pid_t parent = getpid();
    *field = (bare_socket_field){.control = pair[0], .ends = ends, .set = epoll_create1(EPOLL_CLOEXEC), .child = fork()};
    if (field->child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) serve(pair[1], ends);
        _exit(0);
    }
    close(pair[1]);
    while (field->count < count && connect_one(field)) {}
    if (field->count == count && field->child > 0) return field;
    bare_socket_field_end(field);
    return NULL;
}

int64_t bare_socket_field_run(bare_socket_field *field, int64_t count) {
    struct epoll_event events[reports];
    char bytes[message];
    int64_t start = bare_now();
    if (!give_order(field->control, count, -1)) return -1;
    while (count > 0) {
        int ready = epoll_wait(field->set, events, reports, -1);
        for (int index = 0; index < ready; index++) {
            ssize_t size = recv(events[index].data.fd, bytes, message, MSG_DONTWAIT);
            if (size == 0) return -1;
            if (size > 0) count--;
        }
    }
    return bare_now() - start;
}

void bare_socket_field_end(bare_socket_field *field) {
    close(field->control);
    for (int index = 0; index < field->count; index++) close(field->ends[index]);
    close(field->set);
    if (field->child > 0) {
        while (waitpid(field->child, NULL, 0) < 0 && errno == EINTR) {}
    }
    free(field->ends);
    free(field);
}
