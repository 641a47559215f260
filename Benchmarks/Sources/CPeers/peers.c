// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#include "common.h"

#ifdef PORTBENCH_PEERS

const peer *peer_at(peer_case which, size_t index) {
    const peer *const taking_part[][5] = {
        [peer_roundtrip] = {
            &zeromq_peers[which], &glib_peers[peer_roundtrip], &nng_peers[which], &libuv_peers[peer_roundtrip]},
        [peer_oneway] = {&zeromq_peers[which], &glib_peers[peer_oneway], &nng_peers[which]},
        [peer_ipc_roundtrip] = {&zeromq_peers[which], &nng_peers[which]},
        [peer_ipc_oneway] = {&zeromq_peers[which], &nng_peers[which]},
        [peer_ipc_request] = {&dbus_daemon_peers[which], &dbus_broker_peers[which], &grpc_peers[which]},
        [peer_cf_request] = {&sdbus_peers[which], &gnustep_peers[which]},
        [peer_body] = {&zeromq_peers[peer_roundtrip], &nng_peers[peer_roundtrip]},
        [peer_connections] = {&zeromq_router},
    };
    return index < 5 ? taking_part[which][index] : NULL;
}

void peer_serve(const char *name, const char *address, size_t size) {
    if (strcmp(name, zeromq_router.name) == 0) return zeromq_router_serve(address, size);
    // Room for an announcement in any case.
    if (size < packet_size) size = packet_size;
    if (strcmp(name, "ZeroMQ") == 0) zeromq_serve(address, size);
    else if (strcmp(name, "sd-bus") == 0) sdbus_serve(size);
    else if (strcmp(name, "D-Bus") == 0) dbus_serve(address, size);
    else if (strncmp(name, "dbus-", 5) == 0) dbus_become(name, address);
    else if (strncmp(name, "GNUstep", 7) == 0 || strncmp(name, "gRPC", 4) == 0) program_serve(name, address, size);
    else nng_serve(address, size);
}

#else

const peer *peer_at(peer_case which, size_t index) {
    (void)which;
    (void)index;
    return NULL;
}

void peer_serve(const char *name, const char *address, size_t size) {
    (void)name;
    (void)address;
    (void)size;
}

#endif
