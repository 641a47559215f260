// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#ifdef PORTBENCH_PEERS

#include "common.h"
#include <errno.h>
#include <zmq.h>

typedef struct pair {
    void *context, *near, *far;
    size_t size;
    pthread_t thread;
    pid_t child;
    char address[address_size];
} pair;

static int send_message(void *socket, const void *bytes, size_t size) {
    while (zmq_send(socket, bytes, size, 0) < 0) {
        if (errno != EINTR) return -1;
    }
    return 0;
}

static int receive_message(void *socket, void *bytes, size_t size, size_t *got) {
    int count;
    while ((count = zmq_recv(socket, bytes, size, 0)) < 0) {
        if (errno != EINTR) return -1;
    }
    *got = (size_t)count;
    return 0;
}

static const messenger library = {send_message, receive_message};

static void *serve_thread(void *context) {
    pair *made = context;
    messenger_serve(&library, made->far, made->size);
    return NULL;
}

static void *start_threads(size_t size, peer_places places) {
    (void)places;
    pair *made = calloc(1, sizeof *made);
    made->size = size;
    made->context = zmq_ctx_new();
    made->near = zmq_socket(made->context, ZMQ_PAIR);
    made->far = zmq_socket(made->context, ZMQ_PAIR);
    if (zmq_bind(made->near, "inproc://portbench") || zmq_connect(made->far, "inproc://portbench")) return NULL;
    pthread_create(&made->thread, NULL, serve_thread, made);
    return made;
}

static void *start_processes(size_t size, peer_places places) {
    (void)places;
    pair *made = calloc(1, sizeof *made);
    made->size = size;
    made->context = zmq_ctx_new();
    made->near = zmq_socket(made->context, ZMQ_PAIR);
    peer_address(made->address, "zeromq");
    if (zmq_bind(made->near, made->address)) return NULL;
    made->child = peer_spawn("ZeroMQ", made->address, size);
    return made->child > 0 ? made : NULL;
}

static int64_t run_roundtrips(void *context, int64_t count, int64_t *laps) {
    pair *made = context;
    return messenger_roundtrips(&library, made->near, made->size, count, laps);
}

static int64_t run_stream(void *context, int64_t count, int64_t *laps) {
    (void)laps;
    return messenger_stream(&library, ((pair *)context)->near, count);
}

static void finish(void *context) {
    pair *made = context;
    messenger_finish(&library, made->near);
    if (made->child) peer_wait(made->child);
    else pthread_join(made->thread, NULL);
    zmq_close(made->near);
    if (made->far) zmq_close(made->far);
    zmq_ctx_term(made->context);
    // It leaves its socket's file.
    if (made->child) unlink(made->address + strlen("ipc://"));
    free(made);
}

void zeromq_serve(const char *address, size_t size) {
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_PAIR);
    if (zmq_connect(socket, address) == 0) messenger_serve(&library, socket, size);
    zmq_close(socket);
    zmq_ctx_term(context);
}

const peer zeromq_peers[] = {
    [peer_roundtrip] = {"ZeroMQ inproc", start_threads, run_roundtrips, finish, 1},
    [peer_oneway] = {"ZeroMQ inproc", start_threads, run_stream, finish, 0},
    [peer_ipc_roundtrip] = {"ZeroMQ ipc", start_processes, run_roundtrips, finish, 1},
    [peer_ipc_oneway] = {"ZeroMQ ipc", start_processes, run_stream, finish, 0},
};

#endif
