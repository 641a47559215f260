// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#define _GNU_SOURCE
#include "wire.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static struct head good(void) { return (struct head){.kind = MESSAGE, .id = 1, .components = 0}; }

static int connected(const char *directory, const char *name) {
    int connection = look_up(directory, name);
    if (connection < 0) fail("the name is unknown");
    return connection;
}

/// The refusal that must follow a breach, and the end of the connection.
static void expect_refusal(int connection, const char *breach) {
    struct message answer;
    if (next_message(connection, &answer)) {
        if (answer.head.kind != REFUSED || answer.head.id != 18) fail("%s: a packet of kind %d", breach, answer.head.kind);
        free_message(&answer);
        if (next_message(connection, &answer)) fail("%s: the connection goes on", breach);
    }
    close(connection);
}

static void send_head(int connection, struct head head) { send_packet(connection, &head, NULL, 0, NULL, 0); }

/// One breach of each kind, each on a connection of its own.
static void breaches(const char *directory, const char *name) {
    static const char *const names[] = {"version", "magic", "kind", "short", "oversized", "length", "total", "components",
                                        "descriptors announced", "descriptors hidden", "continuation", "abort", "records",
                                        "address", "an end that is no pipe", "an end that nothing has", "a presence without a pipe", "probe answer", "probe of nothing"};
    for (size_t index = 0; index < sizeof names / sizeof *names; index++) {
        int connection = connected(directory, name), file = open("/dev/null", O_RDONLY);
        static uint8_t bytes[PACKET_LIMIT + 1];
        struct head head = good();
        encode_head(bytes, &head);
        switch (index) {
        case 0: bytes[4] = 99; send_raw(connection, bytes, HEAD, NULL, 0); break;
        case 1: bytes[0] = 'G'; send_raw(connection, bytes, HEAD, NULL, 0); break;
        case 2: bytes[5] = 250; send_raw(connection, bytes, HEAD, NULL, 0); break;
        case 3: send_raw(connection, bytes, HEAD - 1, NULL, 0); break;
        case 4: send_raw(connection, bytes, sizeof bytes, NULL, 0); break;
        case 5: send_packet(connection, &head, "abc", 3, NULL, 0); break;
        case 6: head.total = UINT64_MAX; send_head(connection, head); break;
        case 7: head.components = UINT32_MAX; send_head(connection, head); break;
        case 8: head.descriptors = 200; send_head(connection, head); break;
        case 9: send_packet(connection, &head, NULL, 0, &file, 1); break;
        case 10: head.kind = CONTINUATION; send_packet(connection, &head, "a", 1, NULL, 0); break;
        case 11: head.kind = ABORT; send_head(connection, head); break;
        case 12: head.total = 9; send_packet(connection, &head, "\377\377\377\377\377\377\377\377\377", 9, NULL, 0); break;
        case 13: head.total = 12; send_packet(connection, &head, "\004\0\0\0\004\0\0\0/\377\377a", 12, NULL, 0); break;
        case 14:
            head.components = head.descriptors = 1;
            head.total = 10;
            send_packet(connection, &head, "\005\0\0\0\002\0\0\0/a", 10, &file, 1);
            break;
        case 15:
            head.components = 1;
            head.total = 10;
            send_packet(connection, &head, "\007\0\0\0\002\0\0\0/a", 10, NULL, 0);
            break;
        case 16: head = (struct head){.kind = PRESENCE, .descriptors = 1}; send_packet(connection, &head, NULL, 0, &file, 1); break;
        case 17: head.kind = PROBE_ANSWER; head.answers = 1; send_head(connection, head); break;
        case 18: head.kind = PROBE; send_head(connection, head); break;
        }
        close(file);
        expect_refusal(connection, names[index]);
        printf("refused: %s\n", names[index]);
        fflush(stdout);
    }
}

/// Holds the connection with half a packet's message until the input ends.
static void half(const char *directory, const char *name) {
    int connection = connected(directory, name);
    struct head head = good();
    static uint8_t piece[60000];
    head.total = 256 << 20;
    head.components = 1;
    send_packet(connection, &head, piece, sizeof piece, NULL, 0);
    printf("silent\n");
    fflush(stdout);
    while (getchar() != EOF) {}
}

/// Connects as often as it may, and holds the connections until the input ends.
static void connect_many(const char *directory, const char *name) {
    struct rlimit limit;
    int made = 0;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max < 12000 ? limit.rlim_max : 12000;
    setrlimit(RLIMIT_NOFILE, &limit);
    while (made < 5000 && look_up(directory, name) >= 0) made++;
    printf("connections %d\n", made);
    fflush(stdout);
    while (getchar() != EOF) {}
}

/// Sends requests as long as the kernel accepts them, reads no answer, and holds the connection until the input ends.
static void flood(const char *directory, const char *name) {
    int connection = connected(directory, name), file = open("/dev/null", O_RDONLY);
    uint8_t packet[HEAD + 1008];
    int sent = 0, blocked = 0;
    printf("flooding\n");
    fflush(stdout);
    fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    char ignored;
    while (sent < 200000 && read(STDIN_FILENO, &ignored, 1) != 0) {
        struct head head = {.kind = MESSAGE, .id = 1, .components = 1, .asks = (uint64_t)sent + 1, .total = 1008};
        encode_head(packet, &head);
        put_record(packet + HEAD, 0, BYTES, memset(packet + HEAD + 8, 'x', 1000), 1000);
        ssize_t taken = send(connection, packet, sizeof packet, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (taken >= 0) sent++;
        else if (errno == EAGAIN && blocked++ < 100000) usleep(100);
        else break;
    }
    close(file);
    while (read(STDIN_FILENO, &ignored, 1) != 0 && errno == EAGAIN) usleep(1000);
}

/// Asks for a reply that never comes, and sends very many probes about it and about what it has not asked, with numbers of
/// its own and with one again and again.
static void probe(const char *directory, const char *name) {
    int connection = connected(directory, name);
    send_bytes(connection, 2, 1, 0, "", 0);
    for (uint64_t index = 1; index <= 100000; index++) {
        struct head head = {.kind = PROBE, .asks = index % 3, .answers = UINT64_MAX - index % 5 * index, .total = index % 7};
        if (head.asks == 0) head.asks = UINT64_MAX - index;
        if (!send_packet(connection, &head, NULL, 0, NULL, 0)) fail("a probe ended the connection");
        if (index == 1000) printf("probing\n");
        if (index == 1000) fflush(stdout);
    }
    while (getchar() != EOF) {}
}

/// Has as many connections as it gets, keeps each of them full of empty messages until the input ends, and never reads.
static void horde(const char *directory, const char *name) {
    enum { COUNT = 250 };
    int connections[COUNT];
    struct head head = good();
    uint8_t packet[HEAD];
    encode_head(packet, &head);
    for (int index = 0; index < COUNT; index++) connections[index] = connected(directory, name);
    fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    char ignored;
    for (int round = 0; read(STDIN_FILENO, &ignored, 1) != 0; round++) {
        for (int index = 0; index < COUNT; index++)
            while (send(connections[index], packet, sizeof packet, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {}
        if (round == 0) printf("sending\n");
        fflush(stdout);
        usleep(1000);
    }
}

int run_hostile(const char *directory, const char *name, const char *act) {
    if (strcmp(act, "breaches") == 0) breaches(directory, name);
    else if (strcmp(act, "half") == 0) half(directory, name);
    else if (strcmp(act, "connect") == 0) connect_many(directory, name);
    else if (strcmp(act, "flood") == 0) flood(directory, name);
    else if (strcmp(act, "horde") == 0) horde(directory, name);
    else if (strcmp(act, "probe") == 0) probe(directory, name);
    else fail("no such act: %s", act);
    return 0;
}
