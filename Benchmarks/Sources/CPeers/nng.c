// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#ifdef PORTBENCH_PEERS

#include "common.h"
#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>

typedef struct pair {
    nng_socket near, far;
    size_t size;
    pthread_t thread;
    pid_t child;
} pair;

static int send_message(void *socket, const void *bytes, size_t size) {
    return nng_send(*(nng_socket *)socket, (void *)bytes, size, 0);
}

static int receive_message(void *socket, void *bytes, size_t size, size_t *got) {
    *got = size;
    return nng_recv(*(nng_socket *)socket, bytes, got, 0);
}

static const messenger library = {send_message, receive_message};

static void *serve_thread(void *context) {
    pair *made = context;
    messenger_serve(&library, &made->far, made->size);
    return NULL;
}

static int open_socket(nng_socket *socket) {
    return nng_pair0_open(socket) || nng_socket_set_size(*socket, NNG_OPT_RECVMAXSZ, 0)
        || nng_socket_set_int(*socket, NNG_OPT_SENDBUF, 1024) || nng_socket_set_int(*socket, NNG_OPT_RECVBUF, 1024);
}

static void *start_threads(size_t size, peer_places places) {
    (void)places;
    pair *made = calloc(1, sizeof *made);
    made->size = size;
    if (open_socket(&made->near) || open_socket(&made->far)) return NULL;
    if (nng_listen(made->near, "inproc://portbench", NULL, 0)) return NULL;
    if (nng_dial(made->far, "inproc://portbench", NULL, 0)) return NULL;
    pthread_create(&made->thread, NULL, serve_thread, made);
    return made;
}

static void *start_processes(size_t size, peer_places places) {
    (void)places;
    pair *made = calloc(1, sizeof *made);
    char address[address_size];
    made->size = size;
    peer_address(address, "nng");
    if (open_socket(&made->near) || nng_listen(made->near, address, NULL, 0)) return NULL;
    made->child = peer_spawn("nng", address, size);
    return made->child > 0 ? made : NULL;
}

static int64_t run_roundtrips(void *context, int64_t count, int64_t *laps) {
    pair *made = context;
    return messenger_roundtrips(&library, &made->near, made->size, count, laps);
}

static int64_t run_stream(void *context, int64_t count, int64_t *laps) {
    (void)laps;
    return messenger_stream(&library, &((pair *)context)->near, count);
}

static void finish(void *context) {
    pair *made = context;
    messenger_finish(&library, &made->near);
    if (made->child) {
        peer_wait(made->child);
    } else {
        pthread_join(made->thread, NULL);
        nng_close(made->far);
    }
    nng_close(made->near);
    free(made);
}

void nng_serve(const char *address, size_t size) {
    nng_socket socket;
    if (open_socket(&socket) || nng_dial(socket, address, NULL, 0)) return;
    messenger_serve(&library, &socket, size);
    nng_close(socket);
}

const peer nng_peers[] = {
    [peer_roundtrip] = {"nng inproc", start_threads, run_roundtrips, finish, 1},
    [peer_oneway] = {"nng inproc", start_threads, run_stream, finish, 0},
    [peer_ipc_roundtrip] = {"nng ipc", start_processes, run_roundtrips, finish, 1},
    [peer_ipc_oneway] = {"nng ipc", start_processes, run_stream, finish, 0},
};

#endif
