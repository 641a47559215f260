// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#ifdef PORTBENCH_PEERS

#include "common.h"
#include <errno.h>
#include <sys/socket.h>

// Libraries that cannot be in this program, so both of their sides are another one, in which a child of this program
// goes on. GNUstep's library has `_Block_copy` and others of the names that Swift's has; gRPC is in C++, and its threads
// go on when its channels have ended. The client measures, and reports.

static const char gnustep[] = "GNUstep", grpc[] = "gRPC";

enum { path_size = 4096, suffix_size = 16 };

typedef struct pair {
    int server, client;
    pid_t server_child, client_child;
    /// The file of the server's socket; empty when it has none.
    char socket[address_size];
} pair;

/// Returns whether all came.
static int receive(int descriptor, void *bytes, size_t size) {
    return size == 0 || recv(descriptor, bytes, size, MSG_WAITALL) == (ssize_t)size;
}

/// Starts a side, and waits until it is ready.
static pid_t start_side(
    int32_t place, const char *library, const char *side, const char *address, size_t size, int *descriptor) {
    char ready, name[32];
    snprintf(name, sizeof name, "%s %s", library, side);
    pid_t child = peer_spawn_at(place, name, address, size, descriptor);
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
    if (made->socket[0]) unlink(made->socket);
    free(made);
}

static void *start(const char *library, const char *address, size_t size, peer_places places) {
    pair *made = calloc(1, sizeof *made);
    made->server_child = start_side(places.far, library, "server", address, size, &made->server);
    if (made->server_child > 0) {
        made->client_child = start_side(places.near, library, "client", address, size, &made->client);
    }
    if (made->client_child > 0) return made;
    finish(made);
    return NULL;
}

static void *start_gnustep(size_t size, peer_places places) {
    static int number;
    char port[40];
    snprintf(port, sizeof port, "portbench-%d-%d", getpid(), __atomic_fetch_add(&number, 1, __ATOMIC_RELAXED));
    return start(gnustep, port, size, places);
}

static void *start_grpc(size_t size, peer_places places) {
    char path[address_size], address[address_size];
    peer_address(path, "grpc");
    snprintf(address, sizeof address, "unix:%s", path + strlen("ipc://"));
    pair *made = start(grpc, address, size, places);
    if (made) strcpy(made->socket, path + strlen("ipc://"));
    return made;
}

static int64_t run(void *context, int64_t count, int64_t *laps) {
    pair *made = context;
    int64_t order[] = {count, laps != NULL}, time;
    if (send(made->client, order, sizeof order, MSG_NOSIGNAL) != sizeof order) return -1;
    if (!receive(made->client, &time, sizeof time)) return -1;
    return time < 0 || !laps || receive(made->client, laps, (size_t)count * sizeof *laps) ? time : -1;
}

/// The program of a library, beside this one.
static int find_program(const char *library, char path[path_size]) {
    ssize_t length = readlink("/proc/self/exe", path, path_size - suffix_size);
    if (length < 0) return -1;
    strcpy(path + length, library == gnustep ? "-gnustep" : "-grpc");
    return 0;
}

static const char *grpc_obstacle(void) {
    char path[path_size];
    if (find_program(grpc, path) == 0 && access(path, X_OK) == 0) return NULL;
    return "portbench was built without libgrpc++-dev";
}

void program_serve(const char *name, const char *address, size_t size) {
    const char *library = strncmp(name, grpc, strlen(grpc)) == 0 ? grpc : gnustep;
    char program[path_size], text[24];
    snprintf(text, sizeof text, "%zu", size);
    if (find_program(library, program)) return;
    execl(program, program, name + strlen(library) + 1, address, text, NULL);
    fprintf(stderr, "portbench: %s: %s\n", program, strerror(errno));
}

const peer gnustep_peers[] = {[peer_cf_request] = {"GNUstep NSMessagePort", start_gnustep, run, finish, 1}};
const peer grpc_peers[] = {[peer_ipc_request] = {"gRPC", start_grpc, run, finish, 1, grpc_obstacle}};

#endif
