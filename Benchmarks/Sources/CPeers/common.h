// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include "peers.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { packet_size = 64, address_size = 108, peer_socket = 3 };

static inline int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/// Records a lap and returns its time.
static inline int64_t lap(int64_t *laps, int64_t index, int64_t last) {
    int64_t time = now();
    if (laps) laps[index] = time - last;
    return time;
}

/// A library's socket, which sends and receives whole messages. Each function returns 0, or another number on failure.
typedef struct messenger {
    int (*send)(void *socket, const void *bytes, size_t size);
    int (*receive)(void *socket, void *bytes, size_t size, size_t *got);
} messenger;

/// Sends `size` bytes and waits for the answer, `count` times.
int64_t messenger_roundtrips(
    const messenger *library, void *socket, size_t size, int64_t count, int64_t *laps);
/// Sends `count` messages, and waits for one answer to them all.
int64_t messenger_stream(const messenger *library, void *socket, int64_t count);
/// The other side: eight bytes announce a stream, none is the end, and 64 bytes answer the rest.
void messenger_serve(const messenger *library, void *socket, size_t size);
/// Makes the other side end.
void messenger_finish(const messenger *library, void *socket);

/// An unused name for a Unix socket, in the temporary directory.
void peer_address(char address[address_size], const char *library);
/// Starts this program again to serve there; its number, or -1.
pid_t peer_spawn(const char *name, const char *address, size_t size);
/// As `peer_spawn`, at a place. The child gets one end of a pair of stream sockets as `peer_socket`, this side the
/// other.
pid_t peer_spawn_at(int32_t place, const char *name, const char *address, size_t size, int *socket);
/// Whether a program of this name is in one of the folders of PATH.
int peer_has_program(const char *name);
/// Reads a text that ends with `end`, which is left out. Returns 0 unless it is too long or not whole.
int peer_read_text(int socket, char end, char *text, size_t size);
/// Waits for its end.
void peer_wait(pid_t child);

extern const peer zeromq_peers[], nng_peers[], glib_peers[], libuv_peers[], sdbus_peers[], dbus_daemon_peers[],
    dbus_broker_peers[], gnustep_peers[], grpc_peers[];
extern const peer zeromq_router;
void zeromq_serve(const char *address, size_t size);
/// Has as many clients as `size` says, in processes that it starts.
void zeromq_router_serve(const char *address, size_t size);
void nng_serve(const char *address, size_t size);
void sdbus_serve(size_t size);
/// Answers on the bus at an address.
void dbus_serve(const char *address, size_t size);
/// Becomes a bus: its program, and the folder that it may use.
void dbus_become(const char *program, const char *directory);
/// Becomes a side of a library that has a program of its own.
void program_serve(const char *name, const char *address, size_t size);
