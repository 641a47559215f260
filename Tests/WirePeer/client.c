// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#include "wire.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void expect(int holds, const char *what) {
    if (!holds) fail("expected: %s", what);
    printf("%s\n", what);
    fflush(stdout);
}

static struct message reply(int connection, uint64_t token) {
    struct message answer;
    if (!next_message(connection, &answer)) fail("the connection ended before the reply to %llu", (unsigned long long)token);
    if (answer.head.answers != token) fail("a reply to %llu", (unsigned long long)answer.head.answers);
    return answer;
}

static void ask_small(int connection) {
    size_t length;
    send_bytes(connection, 1, 1, 0, "stressed", 8);
    struct message answer = reply(connection, 1);
    const uint8_t *bytes = message_bytes(&answer, &length);
    expect(length == 8 && memcmp(bytes, "desserts", 8) == 0, "a request is answered");
    free_message(&answer);
}

static void ask_large(int connection) {
    size_t size = 1000003, length;
    uint8_t *request = malloc(size);
    for (size_t index = 0; index < size; index++) request[index] = (uint8_t)(index * 7);
    send_bytes(connection, 1, 2, 0, request, size);
    struct message answer = reply(connection, 2);
    const uint8_t *bytes = message_bytes(&answer, &length);
    int same = length == size;
    for (size_t index = 0; same && index < size; index++) same = bytes[index] == request[size - 1 - index];
    expect(same, "a large request is answered with a large reply");
    free_message(&answer);
    free(request);
}

static void give_up_half_way(int connection) {
    struct head head = {.kind = MESSAGE, .id = 1, .components = 1, .asks = 3, .total = 100000};
    uint8_t piece[1000] = {0};
    send_packet(connection, &head, piece, sizeof piece, NULL, 0);
    head = (struct head){.kind = ABORT};
    send_packet(connection, &head, NULL, 0, NULL, 0);
    send_bytes(connection, 1, 4, 0, "ab", 2);
    struct message answer = reply(connection, 4);
    expect(answer.head.kind == MESSAGE, "a message that was given up is nothing");
    free_message(&answer);
}

static void send_between_pieces(int connection) {
    struct head head = {.kind = MESSAGE, .id = 1, .components = 1, .asks = 10, .total = 60008};
    uint8_t payload[60008] = {0};
    size_t half = 30000;
    put_record(payload, 0, BYTES, payload + 8, 60000);
    send_packet(connection, &head, payload, half, NULL, 0);
    send_bytes(connection, 1, 11, 0, "ab", 2);
    struct message answer = reply(connection, 11);
    expect(answer.head.kind == MESSAGE, "a message between the pieces of another is answered before that is whole");
    free_message(&answer);
    head = (struct head){.kind = CONTINUATION};
    send_packet(connection, &head, payload + half, sizeof payload - half, NULL, 0);
    answer = reply(connection, 10);
    expect(answer.head.total == 60008, "the other is answered when it is whole");
    free_message(&answer);
}

static void ask_for_confirmation(int connection) {
    uint8_t payload[16];
    for (uint64_t stage = 1; stage <= 3; stage++) {
        struct head head = {.kind = CONFIRMED, .id = 9, .components = 1, .asks = 11 + stage, .answers = stage};
        head.total = put_record(payload, 0, BYTES, "ab", 2);
        send_packet(connection, &head, payload, head.total, NULL, 0);
        struct message answer = reply(connection, 11 + stage);
        expect(answer.head.kind == MESSAGE && answer.head.total == 0, "a message is confirmed");
        free_message(&answer);
    }
}

static void pass_descriptor(int connection) {
    int ends[2];
    char text[8] = {0};
    uint8_t payload[8];
    if (pipe(ends) < 0) fail("no pipe");
    struct head head = {.kind = MESSAGE, .descriptors = 1, .id = 5, .components = 1, .asks = 5};
    head.total = put_record(payload, 0, DESCRIPTOR, NULL, 0);
    send_packet(connection, &head, payload, head.total, &ends[1], 1);
    close(ends[1]);
    struct message answer = reply(connection, 5);
    expect(read(ends[0], text, sizeof text) == 5 && strcmp(text, "hello") == 0, "a descriptor arrives and is written to");
    expect(read(ends[0], text, sizeof text) == 0, "a descriptor is closed once it is not needed");
    expect(answer.head.kind == MESSAGE && answer.descriptor_count == 1, "a reply brings a descriptor");
    expect(read(answer.descriptors[0], text, sizeof text) == 5, "that descriptor can be read");
    close(ends[0]);
    free_message(&answer);
}

static void pass_many_descriptors(int connection) {
    static uint8_t payload[300 * 8];
    int ends[2], copies[PACKET_DESCRIPTORS];
    struct head head = {.kind = MESSAGE, .descriptors = 300, .id = 8, .components = 300, .asks = 15};
    size_t half = sizeof payload / 2;
    if (pipe(ends) < 0) fail("no pipe");
    for (int index = 0; index < PACKET_DESCRIPTORS; index++) copies[index] = ends[1];
    for (int index = 0; index < 300; index++) head.total = put_record(payload, head.total, DESCRIPTOR, NULL, 0);
    send_packet(connection, &head, payload, half, copies, PACKET_DESCRIPTORS);
    head = (struct head){.kind = CONTINUATION, .descriptors = 300 - PACKET_DESCRIPTORS};
    send_packet(connection, &head, payload + half, sizeof payload - half, copies, 300 - PACKET_DESCRIPTORS);
    close(ends[1]);
    close(ends[0]);
    struct message answer = reply(connection, 15);
    expect(answer.head.kind == MESSAGE && answer.descriptor_count == 300, "a message of two packets passes 300 descriptors");
    free_message(&answer);
}

static void refusals(int connection) {
    send_bytes(connection, 2, 6, 0, "", 0);
    struct message answer = reply(connection, 6);
    expect(answer.head.kind == REPLY_DROPPED, "a dropped reply is reported");
    free_message(&answer);
    send_bytes(connection, 3, 7, 0, "", 0);
    answer = reply(connection, 7);
    expect(answer.head.kind == REPLY_FAILED && answer.head.id == 5 && answer.length == 4 &&
               memcmp(answer.payload, "full", 4) == 0, "an error is reported with its number and text");
    free_message(&answer);
}

static void give_up_waiting(int connection) {
    send_bytes(connection, 6, 8, 0, "", 0);
    struct head head = {.kind = ABANDONED, .asks = 8};
    send_packet(connection, &head, NULL, 0, NULL, 0);
    send_bytes(connection, 1, 9, 0, "ab", 2);
    /* The answer to 8 may have been on its way already: then it is dropped here. */
    struct message answer;
    if (!next_message(connection, &answer)) fail("the connection ended before the reply to 9");
    if (answer.head.answers == 8 && answer.head.kind == REPLY_DROPPED) {
        free_message(&answer);
        answer = reply(connection, 9);
    }
    expect(answer.head.kind == MESSAGE && answer.head.answers == 9, "a request that is abandoned ends");
    free_message(&answer);
}

static void probe_a_server_that_runs(int connection) {
    struct head head = {.kind = PROBE, .asks = 12, .answers = UINT64_MAX, .total = 1};
    send_bytes(connection, 1, 12, 0, "ab", 2);
    send_packet(connection, &head, NULL, 0, NULL, 0);
    struct message answer = reply(connection, 12);
    free_message(&answer);
    send_packet(connection, &head, NULL, 0, NULL, 0);
    send_bytes(connection, 1, 13, 0, "ab", 2);
    answer = reply(connection, 13);
    expect(answer.head.kind == MESSAGE, "a probe of a server that runs is not answered");
    free_message(&answer);
}

static void check_in(int connection, const char *directory) {
    char address[PATH_LIMIT];
    int listener = listen_in(directory, address);
    uint8_t payload[PATH_LIMIT + 8];
    struct head head = {.kind = PRESENCE, .descriptors = 1};
    int seen[2], own[2];
    if (pipe(seen) < 0 || pipe(own) < 0) fail("no pipe");
    /* As a client that passes on a right to the port. The other pipe is that of a port of its own, which counts. */
    send_packet(connection, &head, NULL, 0, &seen[0], 1);
    close(seen[0]);
    close(seen[1]);
    head = (struct head){.kind = MESSAGE, .descriptors = 1, .id = 100};
    head.total = put_record(payload, 0, COUNTED_REPLY_PORT, address, (uint32_t)strlen(address));
    send_packet(connection, &head, payload, head.total, &own[1], 1);
    close(own[1]);
    int parent = accept_one(listener);
    struct message message;
    expect(next_message(parent, &message) && message.head.id == 102, "a port that checked in gets a message");
    free_message(&message);
    close(parent);
    await_readable(own[0]);
    expect(read(own[0], payload, 1) == 0, "the end that came with a right is closed with it");
    close(own[0]);
    close(listener);
    let_go();
}

int run_client(const char *directory, const char *name) {
    int connection = look_up(directory, name);
    expect(connection >= 0, "the name leads to a port");
    ask_small(connection);
    ask_large(connection);
    give_up_half_way(connection);
    send_between_pieces(connection);
    ask_for_confirmation(connection);
    pass_descriptor(connection);
    pass_many_descriptors(connection);
    refusals(connection);
    give_up_waiting(connection);
    probe_a_server_that_runs(connection);
    check_in(connection, directory);
    expect(look_up(directory, "nobody has this name") < 0, "a name without an owner leads nowhere");
    close(connection);
    return 0;
}
