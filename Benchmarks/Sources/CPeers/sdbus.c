// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#ifdef PORTBENCH_PEERS

#include "common.h"
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

// A bus between two processes, without a daemon: one method, 64 bytes there and back.

static const char path[] = "/org/example/portbench", interface[] = "org.example.portbench", method[] = "Request";

typedef struct pair {
    sd_bus *bus;
    pid_t child;
} pair;

static void finish(void *context) {
    pair *made = context;
    // Its end is the end of the child's loop.
    sd_bus_close_unref(made->bus);
    peer_wait(made->child);
    free(made);
}

static void *start(size_t size, peer_places places) {
    pair *made = calloc(1, sizeof *made);
    int descriptor;
    made->child = peer_spawn_at(places.far, "sd-bus", "", size, &descriptor);
    if (made->child < 0 || sd_bus_new(&made->bus) < 0) return NULL;
    if (sd_bus_set_fd(made->bus, descriptor, descriptor) >= 0 && sd_bus_start(made->bus) >= 0) return made;
    finish(made);
    return NULL;
}

static int append(sd_bus_message *message) {
    char bytes[packet_size] = {0};
    return sd_bus_message_append_array(message, 'y', bytes, sizeof bytes);
}

static int read_bytes(sd_bus_message *message) {
    const void *bytes;
    size_t size;
    int code = sd_bus_message_read_array(message, 'y', &bytes, &size);
    return code < 0 || size != packet_size ? -1 : 0;
}

static int request(sd_bus *bus) {
    sd_bus_message *message = NULL, *reply = NULL;
    int code = sd_bus_message_new_method_call(bus, &message, NULL, path, interface, method);
    if (code >= 0) code = append(message);
    if (code >= 0) code = sd_bus_call(bus, message, 10 * 1000 * 1000, NULL, &reply);
    if (code >= 0) code = read_bytes(reply);
    sd_bus_message_unref(message);
    sd_bus_message_unref(reply);
    return code;
}

static int64_t run(void *context, int64_t count, int64_t *laps) {
    pair *made = context;
    int64_t begin = now(), last = begin;
    for (int64_t i = 0; i < count; i++) {
        if (request(made->bus) < 0) return -1;
        if (laps) last = lap(laps, i, last);
    }
    return now() - begin;
}

static int answer(sd_bus_message *message, void *context, sd_bus_error *error) {
    (void)context;
    (void)error;
    sd_bus_message *reply = NULL;
    int code = read_bytes(message);
    if (code >= 0) code = sd_bus_message_new_method_return(message, &reply);
    if (code >= 0) code = append(reply);
    if (code >= 0) code = sd_bus_send(NULL, reply, NULL);
    sd_bus_message_unref(reply);
    return code;
}

static const sd_bus_vtable methods[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("Request", "ay", "ay", answer, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

void sdbus_serve(void) {
    sd_bus *bus = NULL;
    sd_event *loop = NULL;
    sd_id128_t id;
    if (sd_event_new(&loop) < 0 || sd_bus_new(&bus) < 0 || sd_id128_randomize(&id) < 0) return;
    if (sd_bus_set_fd(bus, peer_socket, peer_socket) < 0 || sd_bus_set_server(bus, 1, id) < 0) return;
    if (sd_bus_add_object_vtable(bus, NULL, path, interface, methods, NULL) < 0) return;
    if (sd_bus_start(bus) < 0 || sd_bus_attach_event(bus, loop, SD_EVENT_PRIORITY_NORMAL) < 0) return;
    // Until the other side has gone.
    sd_bus_set_exit_on_disconnect(bus, 1);
    sd_event_loop(loop);
    sd_bus_unref(bus);
    sd_event_unref(loop);
}

const peer sdbus_peers[] = {[peer_cf_request] = {"sd-bus", start, run, finish, 1}};

#endif
