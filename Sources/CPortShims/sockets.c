/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the swift-message-port authors */
#define _GNU_SOURCE
#include "CPortShims.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

/* include/net/scm.h of the kernel: the most descriptors in one message. */
#define MAX_DESCRIPTORS 253
const int SHIM_MSG_TRUNC = MSG_TRUNC, SHIM_MSG_CTRUNC = MSG_CTRUNC, SHIM_SCM_MAX_FD = MAX_DESCRIPTORS;

const int SHIM_SOCK_SEQPACKET = SOCK_SEQPACKET, SHIM_SOCK_STREAM = SOCK_STREAM, SHIM_SOCK_CLOEXEC = SOCK_CLOEXEC,
          SHIM_SOCK_NONBLOCK = SOCK_NONBLOCK;

long shim_send(int socket, const void *head, size_t headLength, const void *body, size_t bodyLength, const void *tail,
               size_t tailLength, const int *descriptors, int descriptorCount) {
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * MAX_DESCRIPTORS)];
    } control;
    struct iovec parts[3] = {{.iov_base = (void *)head, .iov_len = headLength}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 1};
    if (bodyLength > 0) {
        parts[message.msg_iovlen++] = (struct iovec){.iov_base = (void *)body, .iov_len = bodyLength};
    }
    if (tailLength > 0) {
        parts[message.msg_iovlen++] = (struct iovec){.iov_base = (void *)tail, .iov_len = tailLength};
    }
    if (descriptorCount > MAX_DESCRIPTORS) {
        errno = EINVAL;
        return -1;
    }
    if (descriptorCount > 0) {
        size_t length = sizeof(int) * (size_t)descriptorCount;
        message.msg_control = control.space;
        message.msg_controllen = CMSG_SPACE(length);
        memset(control.space, 0, message.msg_controllen);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(length);
        memcpy(CMSG_DATA(&control.header), descriptors, length);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

long shim_receive(int socket, void *head, size_t headCapacity, void *body, size_t bodyCapacity, int *descriptors,
                  int descriptorCapacity, int *descriptorCount, int *flags) {
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * MAX_DESCRIPTORS)];
    } control;
    struct iovec parts[2] = {{.iov_base = head, .iov_len = headCapacity}, {.iov_base = body, .iov_len = bodyCapacity}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
    ssize_t count = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    int found = 0;
    if (count >= 0) {
        for (struct cmsghdr *entry = CMSG_FIRSTHDR(&message); entry != NULL; entry = CMSG_NXTHDR(&message, entry)) {
            if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_RIGHTS) continue;
            size_t length = entry->cmsg_len - CMSG_LEN(0);
            for (size_t offset = 0; offset + sizeof(int) <= length && found < descriptorCapacity; offset += sizeof(int))
                memcpy(&descriptors[found++], CMSG_DATA(entry) + offset, sizeof(int));
        }
        *flags = message.msg_flags;
    }
    *descriptorCount = found;
    return count;
}

int shim_pass_credentials(int socket, int on) {
    return setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
}

long shim_send_credentials(int socket, const void *head, size_t length) {
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct ucred credentials = {.pid = getpid(), .uid = geteuid(), .gid = getegid()};
    struct iovec part = {.iov_base = (void *)head, .iov_len = length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
    memset(control.space, 0, sizeof control.space);
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_CREDENTIALS;
    control.header.cmsg_len = CMSG_LEN(sizeof credentials);
    memcpy(CMSG_DATA(&control.header), &credentials, sizeof credentials);
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int shim_peek_credentials(int socket, int *process, unsigned *user, unsigned *group) {
    char byte;
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
    struct ucred credentials;
    if (recvmsg(socket, &message, MSG_DONTWAIT | MSG_PEEK | MSG_CMSG_CLOEXEC) < 0) return -1;
    for (struct cmsghdr *entry = CMSG_FIRSTHDR(&message); entry != NULL; entry = CMSG_NXTHDR(&message, entry)) {
        if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_CREDENTIALS ||
            entry->cmsg_len != CMSG_LEN(sizeof credentials))
            continue;
        memcpy(&credentials, CMSG_DATA(entry), sizeof credentials);
        *process = credentials.pid;
        *user = credentials.uid;
        *group = credentials.gid;
        return 1;
    }
    return 0;
}

/* Credentials come with every packet, also with one without bytes, but not with the end of a connection. */
int shim_shut_down_and_peek(int socket) {
    char byte;
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    int on = 1, tries = 2;
    ssize_t count;
    shutdown(socket, SHUT_RDWR);
    setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    do {
        message.msg_control = control.space;
        message.msg_controllen = sizeof control.space;
        count = recvmsg(socket, &message, MSG_DONTWAIT | MSG_PEEK | MSG_CMSG_CLOEXEC);
        /* Linux reports a reset once, gVisor each time. */
    } while (count < 0 && errno == ECONNRESET && --tries > 0);
    if (count < 0) return errno != EAGAIN && errno != ENOTCONN;
    return count > 0 || message.msg_controllen > 0 || (message.msg_flags & MSG_CTRUNC) != 0;
}

int shim_set_send_timeout(int socket, long microseconds) {
    struct timeval time = {.tv_sec = microseconds / 1000000, .tv_usec = microseconds % 1000000};
    int flags = fcntl(socket, F_GETFL);
    if (flags == -1 || setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time) != 0) return -1;
    return fcntl(socket, F_SETFL, microseconds > 0 ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

int shim_is_shut_local_stream(int socket) {
    int domain = 0, type = 0;
    struct pollfd state = {.fd = socket, .events = POLLRDHUP};
    socklen_t length = sizeof(int);
    if (getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &length) < 0) return -1;
    if (getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &length) < 0) return -1;
    if (domain != AF_UNIX || type != SOCK_STREAM) return 0;
    /* A socket that is not connected also has POLLHUP, but not POLLRDHUP. */
    return poll(&state, 1, 0) == 1 && (state.revents & (POLLHUP | POLLRDHUP)) == (POLLHUP | POLLRDHUP);
}

long shim_peek(int socket, void *buffer, size_t capacity) {
    return recv(socket, buffer, capacity, MSG_PEEK | MSG_DONTWAIT);
}

int shim_socket_path(int socket, char *path, int capacity, int *length) {
    struct sockaddr_un address = {.sun_family = AF_UNSPEC};
    socklen_t size = sizeof address;
    int result = getsockname(socket, (struct sockaddr *)&address, &size);
    *length = 0;
    if (result == 0 && address.sun_family == AF_UNIX && size > offsetof(struct sockaddr_un, sun_path)) {
        size_t room = size - offsetof(struct sockaddr_un, sun_path);
        size_t count = strnlen(address.sun_path, room < sizeof address.sun_path ? room : sizeof address.sun_path);
        if (count <= (size_t)capacity) {
            memcpy(path, address.sun_path, count);
            *length = (int)count;
        }
    }
    return result;
}

int shim_peer_credentials(int socket, int *process, unsigned *user, unsigned *group) {
    struct ucred credentials;
    socklen_t length = sizeof credentials;
    int result = getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length);
    *process = credentials.pid;
    *user = credentials.uid;
    *group = credentials.gid;
    return result;
}

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59 /* Linux 4.13 */
#endif

int shim_peer_groups(int socket, unsigned *groups, int capacity, int *count) {
    socklen_t length = (socklen_t)capacity * sizeof *groups;
    int result = getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &length);
    *count = (int)(length / sizeof *groups);
    return result;
}

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  /* Linux 6.5 */
#endif

int shim_peer_process(int socket) {
    int process = -1;
    socklen_t length = sizeof process;
    return getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &process, &length) < 0 ? -1 : process;
}

int shim_peer_label(int socket, char *label, int capacity, int *length) {
    socklen_t size = (socklen_t)capacity;
    int result = getsockopt(socket, SOL_SOCKET, SO_PEERSEC, label, &size);
    *length = (int)size;
    return result;
}

int shim_is_of_process_files(int process) {
    struct statfs system;
    if (fstatfs(process, &system) < 0) return -1;
    return system.f_type == 0x50494446; /* PID_FS_MAGIC of linux/magic.h, since Linux 6.9 */
}

int shim_accept(int socket) { return accept4(socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK); }
