// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#ifdef PORTBENCH_PEERS

#include "common.h"
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <zmq.h>

// A ROUTER with many DEALERs, each with a connection of its own: up to a hundred in a process. The processes send one
// after the other, a thousand messages each, by all their DEALERs in turn.

enum { group = 100, turn = 1000, backlog = 4096, identity_size = 255 };

typedef struct field {
    int control;
    pid_t server;
    char address[address_size];
} field;

/// An order, or a report: eight bytes. Returns 0 at the end.
static int take(int control, int64_t *number) {
    ssize_t size;
    while ((size = recv(control, number, sizeof *number, MSG_WAITALL)) < 0 && errno == EINTR) {}
    return size == sizeof *number;
}

static int give(int control, int64_t number) {
    return send(control, &number, sizeof number, MSG_NOSIGNAL) == sizeof number;
}

static int send_by_all(int socket, const char *address, size_t count) {
    // Closes the inherited descriptors, so that the end of the server is visible.
    int control = dup2(socket, peer_socket);
    if (control < 0 || syscall(SYS_close_range, peer_socket + 1, ~0U, 0) != 0) return 1;
    void *dealers[group], *context = NULL;
    char bytes[packet_size] = {7};
    int64_t left, sent = 0;
    while (take(control, &left)) {
        if (!context) {  // the router listens now
            context = zmq_ctx_new();
            for (size_t index = 0; index < count; index++) {
                dealers[index] = zmq_socket(context, ZMQ_DEALER);
                if (!dealers[index] || zmq_connect(dealers[index], address) != 0) return 1;
            }
        }
        for (; left > 0; left--, sent++) {
            while (zmq_send(dealers[sent % (int64_t)count], bytes, sizeof bytes, 0) < 0) {
                if (errno != EINTR) return 1;
            }
        }
    }
    return 0;
}

static int start_client(const char *address, size_t count) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return -1;
    pid_t server = getpid(), client = fork();
    if (client == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(getppid() == server ? send_by_all(pair[1], address, count) : 1);
    }
    close(pair[1]);
    return client > 0 ? pair[0] : -1;
}

/// Receives what a client is asked to send.
static int receive(void *router, int control, int64_t count) {
    if (!give(control, count)) return 0;
    char identity[identity_size], bytes[packet_size];
    while (count > 0) {
        // The first part is the DEALER's name.
        if (zmq_recv(router, identity, sizeof identity, 0) < 0 || zmq_recv(router, bytes, sizeof bytes, 0) < 0) {
            if (errno == EINTR) continue;
            return 0;
        }
        count--;
    }
    return 1;
}

void zeromq_router_serve(const char *address, size_t size) {
    size_t each = size < group ? size : group, number = size / each;
    int *controls = calloc(number, sizeof *controls), queue = backlog;
    // Before the library has threads.
    for (size_t client = 0; client < number; client++) controls[client] = start_client(address, each);
    void *context = zmq_ctx_new(), *router = zmq_socket(context, ZMQ_ROUTER);
    if (zmq_setsockopt(router, ZMQ_BACKLOG, &queue, sizeof queue) || zmq_bind(router, address)) return;
    for (size_t client = 0; client < number; client++) {
        if (!receive(router, controls[client], (int64_t)each)) return;
    }
    int64_t report = 0, left, next = 0;
    while (give(peer_socket, report) && take(peer_socket, &left)) {
        int64_t start = now();
        for (; left > 0; left -= turn, next++) {
            if (!receive(router, controls[next % (int64_t)number], left < turn ? left : turn)) return;
        }
        report = now() - start;
    }
}

static void finish(void *context) {
    field *made = context;
    close(made->control);
    peer_wait(made->server);
    unlink(made->address + strlen("ipc://"));
    free(made);
}

static void *start(size_t size, peer_places places) {
    (void)places;
    field *made = calloc(1, sizeof *made);
    int64_t ready;
    peer_address(made->address, "zeromq");
    made->server = peer_spawn_at(-1, zeromq_router.name, made->address, size, &made->control);
    if (made->server > 0 && take(made->control, &ready)) return made;
    if (made->server > 0) finish(made);
    else free(made);
    return NULL;
}

static int64_t run(void *context, int64_t count, int64_t *laps) {
    (void)laps;
    field *made = context;
    int64_t time;
    return give(made->control, count) && take(made->control, &time) ? time : -1;
}

const peer zeromq_router = {"ZeroMQ ROUTER", start, run, finish, 0};

#endif
