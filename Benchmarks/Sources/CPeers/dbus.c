// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#ifdef PORTBENCH_PEERS

#include "sdbus.h"
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

// Two processes on a bus of their own: sd-bus through dbus-daemon, and through dbus-broker. A call and its answer pass
// the bus once each.

enum { name_size = 64, text_size = 4096 };

typedef struct pair {
    sdbus_caller caller;
    /// A folder with the bus's socket, and its configuration.
    char directory[address_size];
    char address[text_size], server_name[name_size];
    int bus_socket, server_socket;
    pid_t bus, server;
    /// The bus's connection to the one that configures it: dbus-broker's.
    sd_bus *controller;
} pair;

static void make_path(const pair *made, const char *name, char path[address_size]) {
    if (snprintf(path, address_size, "%s/%s", made->directory, name) >= address_size) path[0] = 0;
}

static void remove_file(const pair *made, const char *name) {
    char path[address_size];
    make_path(made, name, path);
    unlink(path);
}

static void finish(void *context) {
    pair *made = context;
    if (made->server > 0) {
        close(made->server_socket);
        peer_wait(made->server);
    }
    sd_bus_flush_close_unref(made->caller.bus);
    sd_bus_flush_close_unref(made->controller);
    if (made->bus > 0) {
        kill(made->bus, SIGTERM);
        peer_wait(made->bus);
        if (made->bus_socket >= 0) close(made->bus_socket);
    }
    remove_file(made, "bus");
    remove_file(made, "bus.conf");
    rmdir(made->directory);
    free(made->caller.bytes);
    free(made);
}

static pair *make(size_t size) {
    pair *made = calloc(1, sizeof *made);
    const char *folder = getenv("TMPDIR");
    made->caller.bytes = calloc(1, size);
    made->caller.size = size;
    snprintf(made->directory, sizeof made->directory, "%s/portbench-dbus-XXXXXX", folder ? folder : "/tmp");
    if (mkdtemp(made->directory)) return made;
    free(made->caller.bytes);
    free(made);
    return NULL;
}

static int connect_to(const char *address, sd_bus **bus) {
    int code = sd_bus_new(bus);
    if (code >= 0) code = sd_bus_set_address(*bus, address);
    if (code >= 0) code = sd_bus_set_bus_client(*bus, 1);
    return code;
}

/// Starts the other process, which reports its name on the bus, and connects this one. Ends all on failure.
static void *start_calls(pair *made, peer_places places) {
    made->server = peer_spawn_at(places.far, "D-Bus", made->address, made->caller.size, &made->server_socket);
    if (made->server > 0 && peer_read_text(made->server_socket, 0, made->server_name, name_size) == 0) {
        made->caller.destination = made->server_name;
        if (connect_to(made->address, &made->caller.bus) >= 0 && sd_bus_start(made->caller.bus) >= 0) return made;
    }
    finish(made);
    return NULL;
}

static int end_with_socket(sd_event_source *source, int descriptor, uint32_t events, void *context) {
    (void)descriptor;
    (void)events;
    (void)context;
    return sd_event_exit(sd_event_source_get_event(source), 0);
}

void dbus_serve(const char *address, size_t size) {
    sd_bus *bus = NULL;
    sd_event *loop = NULL;
    const char *name;
    if (sd_event_new(&loop) < 0 || connect_to(address, &bus) < 0 || sdbus_add_method(bus, &size) < 0) return;
    if (sd_bus_start(bus) < 0 || sd_bus_get_unique_name(bus, &name) < 0) return;
    if (sd_bus_attach_event(bus, loop, SD_EVENT_PRIORITY_NORMAL) < 0) return;
    if (sd_event_add_io(loop, NULL, peer_socket, EPOLLIN, end_with_socket, NULL) < 0) return;
    if (send(peer_socket, name, strlen(name) + 1, MSG_NOSIGNAL) < 0) return;
    sd_bus_set_exit_on_disconnect(bus, 1);
    sd_event_loop(loop);
    sd_bus_flush_close_unref(bus);
    sd_event_unref(loop);
}

// MARK: - dbus-daemon

static const char configuration[] =
    "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\"\n"
    " \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n"
    "<busconfig><type>session</type><listen>unix:path=%s/bus</listen><auth>EXTERNAL</auth>\n"
    "<policy context=\"default\"><allow send_destination=\"*\"/><allow receive_sender=\"*\"/></policy>\n"
    "<limit name=\"max_incoming_bytes\">1000000000</limit><limit name=\"max_outgoing_bytes\">1000000000</limit>\n"
    "<limit name=\"max_message_size\">1000000000</limit></busconfig>\n";

static void *start_daemon(size_t size, peer_places places) {
    pair *made = make(size);
    if (!made) return NULL;
    char path[address_size];
    make_path(made, "bus.conf", path);
    FILE *file = fopen(path, "we");
    if (file) {
        fprintf(file, configuration, made->directory);
        fclose(file);
        made->bus = peer_spawn_at(-1, "dbus-daemon", made->directory, size, &made->bus_socket);
    }
    if (made->bus > 0 && peer_read_text(made->bus_socket, '\n', made->address, text_size) == 0) {
        return start_calls(made, places);
    }
    finish(made);
    return NULL;
}

static const char *daemon_obstacle(void) {
    return peer_has_program("dbus-daemon") ? NULL : "dbus-daemon is not installed";
}

// MARK: - dbus-broker

#define BATCH "bta(btbs)a(btssssuutt)a(btssssuutt)"
#define POLICY "a(u(" BATCH "))a(buu(" BATCH "))a(ss)bs"

/// Appends the policy of a session bus: each user may connect, own names, send and receive. A rule is whether it is
/// allowed, a priority, and to what it applies.
static int append_policy(sd_bus_message *message) {
    const uint64_t priority = 1, none = 0, most = UINT64_MAX;
    const uint32_t each_user = UINT32_MAX;
    int code = sd_bus_message_open_container(message, 'v', "(" POLICY ")");
    if (code >= 0) code = sd_bus_message_open_container(message, 'r', POLICY);
    if (code >= 0) {
        code = sd_bus_message_append(
            message, "a(u(" BATCH "))", 1, each_user, 1, priority, 1, 1, priority, 1, "",  //
            1, 1, priority, "", "", "", "", 0, 0, none, most, 1, 1, priority, "", "", "", "", 0, 0, none, most);
    }
    // No other users, no SELinux, no AppArmor.
    if (code >= 0) code = sd_bus_message_append(message, "a(buu(" BATCH "))a(ss)bs", 0, 0, 0, "session");
    if (code >= 0) code = sd_bus_message_close_container(message);
    return code >= 0 ? sd_bus_message_close_container(message) : code;
}

/// A socket that listens in the folder.
static int listen_in(const pair *made) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    make_path(made, "bus", address.sun_path);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 16) == 0) return listener;
    close(listener);
    return -1;
}

/// Does what its launcher does, which needs systemd: gives it the socket on which it listens, and the policy.
static int configure(pair *made) {
    int listener = listen_in(made);
    if (listener < 0) return -1;
    sd_bus_message *message = NULL;
    int code = sd_bus_new(&made->controller);
    if (code >= 0) code = sd_bus_set_fd(made->controller, made->bus_socket, made->bus_socket);
    if (code < 0) {
        close(listener);
        return code;
    }
    // It owns the descriptor now.
    made->bus_socket = -1;
    code = sd_bus_start(made->controller);
    if (code >= 0) {
        code = sd_bus_message_new_method_call(
            made->controller, &message, NULL, "/org/bus1/DBus/Broker", "org.bus1.DBus.Broker", "AddListener");
    }
    if (code >= 0) code = sd_bus_message_append(message, "oh", "/org/bus1/DBus/Listener/0", listener);
    if (code >= 0) code = append_policy(message);
    if (code >= 0) code = sd_bus_call(made->controller, message, 10 * 1000 * 1000, NULL, NULL);
    sd_bus_message_unref(message);
    close(listener);
    return code;
}

static void *start_broker(size_t size, peer_places places) {
    pair *made = make(size);
    if (!made) return NULL;
    snprintf(made->address, sizeof made->address, "unix:path=%s/bus", made->directory);
    made->bus = peer_spawn_at(-1, "dbus-broker", made->directory, size, &made->bus_socket);
    if (made->bus > 0 && configure(made) >= 0) return start_calls(made, places);
    finish(made);
    return NULL;
}

static const char *broker_obstacle(void) {
    return peer_has_program("dbus-broker") ? NULL : "dbus-broker is not installed";
}

void dbus_become(const char *program, const char *directory) {
    char option[text_size];
    snprintf(option, sizeof option, "--config-file=%s/bus.conf", directory);
    if (strcmp(program, "dbus-daemon") == 0) {
        execlp(program, program, option, "--nofork", "--nopidfile", "--print-address=3", NULL);
    } else {
        sd_id128_t id;
        char text[SD_ID128_STRING_MAX];
        if (sd_id128_randomize(&id) < 0) return;
        sd_id128_to_string(id, text);
        execlp(program, program, "--controller", "3", "--machine-id", text, "--max-bytes", "1000000000", NULL);
    }
    fprintf(stderr, "portbench: %s: %s\n", program, strerror(errno));
}

const peer dbus_daemon_peers[] = {
    [peer_ipc_request] = {"D-Bus, dbus-daemon", start_daemon, sdbus_run, finish, 1, daemon_obstacle}};
const peer dbus_broker_peers[] = {
    [peer_ipc_request] = {"D-Bus, dbus-broker", start_broker, sdbus_run, finish, 1, broker_obstacle}};

#endif
