// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#ifdef PORTBENCH_PEERS

#include "sdbus.h"

// A connection between two processes, without a bus: one method, 64 bytes there and back.

static const char path[] = "/org/example/portbench", interface[] = "org.example.portbench", method[] = "Request";

typedef struct pair {
    sdbus_caller caller;
    pid_t child;
} pair;

static void finish(void *context) {
    pair *made = context;
    // Its end is the end of the child's loop.
    sd_bus_close_unref(made->caller.bus);
    peer_wait(made->child);
    free(made->caller.bytes);
    free(made);
}

static void *start(size_t size, peer_places places) {
    pair *made = calloc(1, sizeof *made);
    made->caller.bytes = calloc(1, size);
    made->caller.size = size;
    int descriptor;
    made->child = peer_spawn_at(places.far, "sd-bus", "", size, &descriptor);
    sd_bus **bus = &made->caller.bus;
    if (made->child < 0 || sd_bus_new(bus) < 0) return NULL;
    if (sd_bus_set_fd(*bus, descriptor, descriptor) >= 0 && sd_bus_start(*bus) >= 0) return made;
    finish(made);
    return NULL;
}

static int read_bytes(sd_bus_message *message, size_t expected) {
    const void *bytes;
    size_t size;
    int code = sd_bus_message_read_array(message, 'y', &bytes, &size);
    return code < 0 || size != expected ? -1 : 0;
}

static int request(const sdbus_caller *caller) {
    sd_bus_message *message = NULL, *reply = NULL;
    int code = sd_bus_message_new_method_call(caller->bus, &message, caller->destination, path, interface, method);
    if (code >= 0) code = sd_bus_message_append_array(message, 'y', caller->bytes, caller->size);
    if (code >= 0) code = sd_bus_call(caller->bus, message, 10 * 1000 * 1000, NULL, &reply);
    if (code >= 0) code = read_bytes(reply, packet_size);
    sd_bus_message_unref(message);
    sd_bus_message_unref(reply);
    return code;
}

int64_t sdbus_run(void *context, int64_t count, int64_t *laps) {
    int64_t begin = now(), last = begin;
    for (int64_t i = 0; i < count; i++) {
        if (request(context) < 0) return -1;
        if (laps) last = lap(laps, i, last);
    }
    return now() - begin;
}

static int answer(sd_bus_message *message, void *context, sd_bus_error *error) {
    (void)error;
    sd_bus_message *reply = NULL;
    char bytes[packet_size] = {0};
    int code = read_bytes(message, *(const size_t *)context);
    if (code >= 0) code = sd_bus_message_new_method_return(message, &reply);
    if (code >= 0) code = sd_bus_message_append_array(reply, 'y', bytes, sizeof bytes);
    if (code >= 0) code = sd_bus_send(NULL, reply, NULL);
    sd_bus_message_unref(reply);
    return code;
}

static const sd_bus_vtable methods[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("Request", "ay", "ay", answer, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

int sdbus_add_method(sd_bus *bus, const size_t *size) {
    return sd_bus_add_object_vtable(bus, NULL, path, interface, methods, (void *)size);
}

void sdbus_serve(size_t size) {
    sd_bus *bus = NULL;
    sd_event *loop = NULL;
    sd_id128_t id;
    if (sd_event_new(&loop) < 0 || sd_bus_new(&bus) < 0 || sd_id128_randomize(&id) < 0) return;
    if (sd_bus_set_fd(bus, peer_socket, peer_socket) < 0 || sd_bus_set_server(bus, 1, id) < 0) return;
    if (sdbus_add_method(bus, &size) < 0 || sd_bus_start(bus) < 0) return;
    if (sd_bus_attach_event(bus, loop, SD_EVENT_PRIORITY_NORMAL) < 0) return;
    // Until the other side has gone.
    sd_bus_set_exit_on_disconnect(bus, 1);
    sd_event_loop(loop);
    sd_bus_unref(bus);
    sd_event_unref(loop);
}

const peer sdbus_peers[] = {[peer_cf_request] = {"sd-bus", start, sdbus_run, finish, 1}};

#endif
