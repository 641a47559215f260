// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Client processes that all connect at once, each to all listeners of a thread with one epoll set, and send one packet
// over each connection: the least that a server of many clients does.

#include "common.h"
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { message = 64, reports = 64, most = 100, patience = 60000 };

struct listener {
    int socket;
    struct sockaddr_un address;
    socklen_t length;
};

struct server {
    struct listener listeners[most];
    int number, set;
    int64_t count;
    bare_first_packets result;
};

static int listen_at_any_address(struct listener *new) {
    new->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    new->address.sun_family = AF_UNIX;
    new->length = sizeof new->address;
    // An address without a name: the kernel chooses one.
    return new->socket >= 0 && bind(new->socket, (void *)&new->address, sizeof new->address.sun_family) == 0
           && getsockname(new->socket, (void *)&new->address, &new->length) == 0 && listen(new->socket, 4096) == 0;
}

static void connect_to_all(const struct server *server, int control) {
    char bytes[message] = {7};
    if (send(control, bytes, 1, MSG_NOSIGNAL) != 1 || recv(control, bytes, 1, 0) != 1) return;
    for (int index = 0; index < server->number; index++) {
        const struct listener *other = &server->listeners[index];
        int end = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (end < 0 || connect(end, (const void *)&other->address, other->length) != 0) return;
        if (send(end, bytes, message, MSG_NOSIGNAL) != message) return;
    }
    while (recv(control, bytes, 1, 0) < 0 && errno == EINTR) {}  // until the server has ended
}

/// Starts a client. Returns the socket over which it says that it is ready, and gets the signal to begin; or -1.
static int start_client(const struct server *server) {
    int pair[2];
    if (bare_socket_pair(bare_packets, pair) != 0) return -1;
    pid_t parent = getpid(), client = fork();
    if (client == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(pair[0]);
        if (getppid() == parent) connect_to_all(server, pair[1]);
        _exit(0);
    }
    close(pair[1]);
    return client > 0 ? pair[0] : -1;
}

/// Adds a socket to the set. The sockets of clients come after the numbers of the listeners.
static int watch(struct server *server, int socket, uint64_t number) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = number};
    return epoll_ctl(server->set, EPOLL_CTL_ADD, socket, &event) == 0;
}

/// Accepts a client of the listener. Returns the error when the kernel refuses.
static int accept_one(struct server *server, uint64_t listener) {
    int client = accept4(server->listeners[listener].socket, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client < 0) return errno == EAGAIN ? 0 : errno;
    return watch(server, client, most + (uint64_t)client) ? 0 : errno;
}

/// Receives a client's packet. Returns the error when there is none, and none will come.
static int receive_one(struct server *server, int client, int64_t *arrived) {
    char bytes[message];
    ssize_t size = recv(client, bytes, message, MSG_DONTWAIT);
    if (size != message) return size >= 0 ? EIO : errno == EAGAIN ? 0 : errno;
    server->result.last = bare_now();
    if ((*arrived)++ == 0) server->result.first = server->result.last;
    return 0;
}

static void *serve(void *context) {
    struct server *server = context;
    struct epoll_event events[reports];
    server->result.error = 0;
    for (int64_t arrived = 0; arrived < server->count && !server->result.error;) {
        int ready = epoll_wait(server->set, events, reports, patience);
        if (ready == 0) server->result.error = ETIMEDOUT;  // a client has failed
        for (int index = 0; index < ready && !server->result.error; index++) {
            uint64_t number = events[index].data.u64;
            server->result.error =
                number < most ? accept_one(server, number) : receive_one(server, (int)(number - most), &arrived);
        }
    }
    return context;
}

/// Serves the clients. Returns the error when the kernel refuses what comes before the first one begins.
static int measure(struct server *server, int clients) {
    int controls[most];
    char byte = 0;
    server->count = (int64_t)server->number * clients;
    server->set = epoll_create1(EPOLL_CLOEXEC);
    if (server->set < 0) return errno;
    for (int index = 0; index < server->number; index++) {
        if (!listen_at_any_address(&server->listeners[index])) return errno;
        if (!watch(server, server->listeners[index].socket, (uint64_t)index)) return errno;
    }
    for (int index = 0; index < clients; index++) {
        controls[index] = start_client(server);
        if (controls[index] < 0) return errno;
        ssize_t size = recv(controls[index], &byte, 1, 0);
        if (size != 1) return size < 0 ? errno : EIO;  // the client has ended
    }
    pthread_t thread;
    int error = pthread_create(&thread, NULL, serve, server);
    if (error != 0) return error;
    int64_t start = bare_now();
    for (int index = 0; index < clients; index++) send(controls[index], &byte, 1, MSG_NOSIGNAL);
    pthread_join(thread, NULL);
    server->result.first -= start;
    server->result.last -= start;
    return 0;
}

void bare_connecting_serve(int socket, int listeners, int clients) {
    struct server server = {.number = listeners < most ? listeners : most};
    int error = measure(&server, clients < most ? clients : most);
    if (error != 0) server.result.error = error;
    send(socket, &server.result, sizeof server.result, MSG_NOSIGNAL);
}
