// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#ifdef PORTBENCH_PEERS

#include "common.h"
#include <spawn.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/wait.h>

extern char **environ;

int64_t messenger_roundtrips(
    const messenger *library, void *socket, size_t size, int64_t count, int64_t *laps) {
    char *out = calloc(1, size), in[packet_size];
    size_t got;
    int64_t start = now(), last = start;
    for (int64_t i = 0; i < count; i++) {
        if (library->send(socket, out, size) || library->receive(socket, in, sizeof in, &got)) {
            free(out);
            return -1;
        }
        if (laps) last = lap(laps, i, last);
    }
    free(out);
    return now() - start;
}

int64_t messenger_stream(const messenger *library, void *socket, int64_t count) {
    char bytes[packet_size] = {0};
    size_t got;
    int64_t start = now();
    if (library->send(socket, &count, sizeof count)) return -1;
    for (int64_t i = 0; i < count; i++) {
        if (library->send(socket, bytes, sizeof bytes)) return -1;
    }
    if (library->receive(socket, bytes, sizeof bytes, &got)) return -1;
    return now() - start;
}

void messenger_serve(const messenger *library, void *socket, size_t size) {
    char *in = calloc(1, size), out[packet_size] = {0};
    size_t got;
    while (library->receive(socket, in, size, &got) == 0 && got > 0) {
        if (got == sizeof(int64_t)) {
            int64_t left;
            memcpy(&left, in, sizeof left);
            while (left > 0 && library->receive(socket, in, size, &got) == 0) left--;
        }
        if (library->send(socket, out, sizeof out)) break;
    }
    free(in);
}

void messenger_finish(const messenger *library, void *socket) { library->send(socket, "", 0); }

void peer_address(char address[address_size], const char *library) {
    static int number;
    const char *directory = getenv("TMPDIR");
    snprintf(
        address, address_size, "ipc://%s/portbench-%s-%d-%d", directory ? directory : "/tmp", library, getpid(),
        __atomic_fetch_add(&number, 1, __ATOMIC_RELAXED));
}

static pid_t spawn(
    int32_t place, const char *name, const char *address, size_t size, const posix_spawn_file_actions_t *actions) {
    char text[24], place_text[12];
    snprintf(text, sizeof text, "%zu", size);
    snprintf(place_text, sizeof place_text, "%d", place);
    char *arguments[10] = {"portbench", "--child"};
    int next = 2;
    if (place >= 0) arguments[next++] = "--place", arguments[next++] = place_text;
    arguments[next++] = "peer";
    arguments[next++] = (char *)name;
    arguments[next++] = (char *)address;
    arguments[next++] = text;
    pid_t child;
    return posix_spawn(&child, "/proc/self/exe", actions, NULL, arguments, environ) == 0 ? child : -1;
}

pid_t peer_spawn(const char *name, const char *address, size_t size) { return spawn(-1, name, address, size, NULL); }

pid_t peer_spawn_at(int32_t place, const char *name, const char *address, size_t size, int *socket) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return -1;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], peer_socket);
    pid_t child = spawn(place, name, address, size, &actions);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    *socket = ends[0];
    if (child < 0) close(ends[0]);
    return child;
}

int peer_has_program(const char *name) {
    const char *folders = getenv("PATH");
    for (const char *next = folders; next; next = strchr(next, ':')) {
        next += *next == ':';
        char path[4096];
        int length = snprintf(path, sizeof path, "%.*s/%s", (int)strcspn(next, ":"), next, name);
        if (length < (int)sizeof path && access(path, X_OK) == 0) return 1;
    }
    return 0;
}

int peer_read_text(int socket, char end, char *text, size_t size) {
    for (size_t length = 0; length < size; length++) {
        ssize_t got;
        while ((got = read(socket, text + length, 1)) < 0 && errno == EINTR) {}
        if (got != 1) return -1;
        if (text[length] != end) continue;
        text[length] = 0;
        return 0;
    }
    return -1;
}

void peer_wait(pid_t child) {
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
}

#endif
