// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#ifdef PORTBENCH_PEERS

#include "common.h"
#include <errno.h>
#include <sys/socket.h>

// GNUstep's library has `_Block_copy` and others of the names that Swift's has, so both of its sides are a program
// without Swift, portbench-gnustep, in which a child of this program goes on. The client measures, and reports.

typedef struct pair {
    int server, client;
    pid_t server_child, client_child;
} pair;

/// Returns whether all came.
static int receive(int descriptor, void *bytes, size_t size) {
    return size == 0 || recv(descriptor, bytes, size, MSG_WAITALL) == (ssize_t)size;
}

/// Starts a side, and waits until it is ready.
static pid_t start_side(int32_t place, const char *name, const char *port, int *descriptor) {
    char ready;
    pid_t child = peer_spawn_at(place, name, port, packet_size, descriptor);
    if (child < 0 || receive(*descriptor, &ready, 1)) return child;
    close(*descriptor);
    peer_wait(child);
    return -1;
}

static void finish(void *context) {
    pair *made = context;
    if (made->client_child > 0) {
        close(made->client);
        peer_wait(made->client_child);
    }
    if (made->server_child > 0) {
        close(made->server);
        peer_wait(made->server_child);
    }
    free(made);
}

static void *start(size_t size, peer_places places) {
    (void)size;
    static int number;
    pair *made = calloc(1, sizeof *made);
    char port[40];
    snprintf(port, sizeof port, "portbench-%d-%d", getpid(), __atomic_fetch_add(&number, 1, __ATOMIC_RELAXED));
    made->server_child = start_side(places.far, "GNUstep server", port, &made->server);
    if (made->server_child > 0) made->client_child = start_side(places.near, "GNUstep client", port, &made->client);
    if (made->client_child > 0) return made;
    finish(made);
    return NULL;
}

static int64_t run(void *context, int64_t count, int64_t *laps) {
    pair *made = context;
    int64_t order[] = {count, laps != NULL}, time;
    if (send(made->client, order, sizeof order, MSG_NOSIGNAL) != sizeof order) return -1;
    if (!receive(made->client, &time, sizeof time)) return -1;
    return time < 0 || !laps || receive(made->client, laps, (size_t)count * sizeof *laps) ? time : -1;
}

void gnustep_serve(const char *name, const char *port) {
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - sizeof "-gnustep");
    if (length < 0) return;
    strcpy(program + length, "-gnustep");
    execl(program, program, name + strlen("GNUstep "), port, NULL);
    fprintf(stderr, "portbench: %s: %s\n", program, strerror(errno));
}

const peer gnustep_peers[] = {[peer_cf_request] = {"GNUstep NSMessagePort", start, run, finish, 1}};

#endif
