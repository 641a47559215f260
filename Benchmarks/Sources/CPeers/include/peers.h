// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// The other libraries in the same cases. Without PORTBENCH_PEERS the lists are empty.

#pragma once

#include <stddef.h>
#include <stdint.h>

/// Where the two sides run: the numbers of the processors among those that this program may use, or -1 for any.
typedef struct peer_places {
    int32_t near, far;
} peer_places;

/// A library in a case: `start` gives the argument of the other functions, or NULL.
typedef struct peer {
    const char *_Nonnull name;
    void *_Nullable (*_Nonnull start)(size_t size, peer_places places);
    /// Does the operation `count` times, on a thread at the near place; `laps` gets the time of each, unless it is NULL. Returns the nanoseconds.
    int64_t (*_Nonnull run)(void *_Nonnull pair, int64_t count, int64_t *_Nullable laps);
    void (*_Nonnull end)(void *_Nonnull pair);
    /// Whether single operations can be timed.
    int times_laps;
    /// Why it is not available here, or NULL; without the function it always is available.
    const char *_Nullable (*_Nullable obstacle)(void);
} peer;

typedef enum peer_case {
    peer_roundtrip, peer_oneway, peer_ipc_roundtrip, peer_ipc_oneway, peer_ipc_request, peer_cf_request,
    /// As peer_roundtrip, with libraries whose messages may have a body of any size.
    peer_body,
    /// As many clients as `size` says, of up to a hundred in a process, send to a server in another one.
    peer_connections
} peer_case;

/// The libraries that take part in a case; NULL when there is no such number.
const peer *_Nullable peer_at(peer_case which, size_t index);

/// In another process: plays the other side of `name`, until the first one ends.
void peer_serve(const char *_Nonnull name, const char *_Nonnull address, size_t size);
