// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#define _GNU_SOURCE
#include "wire.h"
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TIMEOUT = 60000 };  // milliseconds

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("wire-peer: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("\n", stderr);
    va_end(arguments);
    exit(1);
}

static void wait_for(int descriptor, short events) {
    struct pollfd watched = {.fd = descriptor, .events = events};
    int count;
    do count = poll(&watched, 1, TIMEOUT);
    while (count < 0 && errno == EINTR);
    if (count <= 0) fail("nothing happened on descriptor %d", descriptor);
}

void await_readable(int descriptor) { wait_for(descriptor, POLLIN); }

static void put(uint8_t *out, uint64_t number, int size) {
    for (int index = 0; index < size; index++) out[index] = (uint8_t)(number >> (8 * index));
}

static uint64_t get(const uint8_t *bytes, int size) {
    uint64_t number = 0;
    for (int index = 0; index < size; index++) number |= (uint64_t)bytes[index] << (8 * index);
    return number;
}

void encode_head(uint8_t out[HEAD], const struct head *head) {
    memcpy(out, "MPRT", 4);
    out[4] = VERSION;
    out[5] = head->kind;
    put(out + 6, head->descriptors, 2);
    put(out + 8, (uint32_t)head->id, 4);
    put(out + 12, head->components, 4);
    put(out + 16, head->asks, 8);
    put(out + 24, head->answers, 8);
    put(out + 32, head->total, 8);
}

static void decode_head(const uint8_t *bytes, size_t length, struct head *head) {
    if (length < HEAD || memcmp(bytes, "MPRT", 4) != 0 || bytes[4] != VERSION) fail("a packet without a head");
    head->kind = bytes[5];
    head->descriptors = (uint16_t)get(bytes + 6, 2);
    head->id = (int32_t)get(bytes + 8, 4);
    head->components = (uint32_t)get(bytes + 12, 4);
    head->asks = get(bytes + 16, 8);
    head->answers = get(bytes + 24, 8);
    head->total = get(bytes + 32, 8);
}

int send_raw(int connection, const void *bytes, size_t length, const int *fds, int count) {
    char control[CMSG_SPACE(sizeof(int) * PACKET_DESCRIPTORS)];
    struct iovec piece = {.iov_base = (void *)bytes, .iov_len = length};
    struct msghdr packet = {.msg_iov = &piece, .msg_iovlen = 1};
    if (count > 0) {
        packet.msg_control = control;
        packet.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count);
        struct cmsghdr *rights = CMSG_FIRSTHDR(&packet);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
        memcpy(CMSG_DATA(rights), fds, sizeof(int) * (size_t)count);
    }
    for (;;) {
        if (sendmsg(connection, &packet, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return 1;
        if (errno == EPIPE || errno == ECONNRESET) return 0;
        if (errno == EAGAIN) wait_for(connection, POLLOUT);
        else if (errno != EINTR) fail("sendmsg: %s", strerror(errno));
    }
}

int send_packet(int connection, const struct head *head, const void *payload, size_t length, const int *fds, int count) {
    uint8_t packet[PACKET_LIMIT];
    encode_head(packet, head);
    if (length > 0) memcpy(packet + HEAD, payload, length);
    return send_raw(connection, packet, HEAD + length, fds, count);
}

size_t put_record(uint8_t *payload, size_t at, uint8_t kind, const void *bytes, uint32_t length) {
    put(payload + at, kind, 4);
    put(payload + at + 4, length, 4);
    if (length > 0) memcpy(payload + at + 8, bytes, length);
    return at + 8 + length;
}

int send_bytes(int connection, int32_t id, uint64_t asks, uint64_t answers, const void *bytes, size_t length) {
    uint8_t *payload = malloc(length + 8);
    size_t total = put_record(payload, 0, BYTES, bytes, (uint32_t)length), sent = 0;
    struct head head = {.kind = MESSAGE, .id = id, .components = 1, .asks = asks, .answers = answers, .total = total};
    int result = 1;
    do {
        size_t piece = total - sent < PIECE ? total - sent : PIECE;
        result = send_packet(connection, &head, payload + sent, piece, NULL, 0);
        sent += piece;
        head = (struct head){.kind = CONTINUATION};
    } while (result && sent < total);
    free(payload);
    return result;
}

/// One packet; 0 at the end of the connection.
static int receive(int connection, uint8_t *bytes, size_t *length, int *fds, int *count) {
    char control[CMSG_SPACE(sizeof(int) * PACKET_DESCRIPTORS)];
    struct iovec piece = {.iov_base = bytes, .iov_len = PACKET_LIMIT};
    struct msghdr packet = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    wait_for(connection, POLLIN);
    ssize_t size = recvmsg(connection, &packet, MSG_CMSG_CLOEXEC);
    if (size < 0 && errno == ECONNRESET) return 0;
    if (size < 0) fail("recvmsg: %s", strerror(errno));
    if (packet.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) fail("a packet that is too large");
    *length = (size_t)size;
    *count = 0;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(&packet); part; part = CMSG_NXTHDR(&packet, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
        *count = (int)((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(fds, CMSG_DATA(part), sizeof(int) * (size_t)*count);
    }
    return size > 0;
}

static int is_message(const struct head *head) { return head->kind == MESSAGE || head->kind == CONFIRMED; }

static int is_whole(const struct message *message) {
    return !is_message(&message->head) || message->length == message->head.total;
}

/// The messages that came between the pieces of another, in their order.
static struct {
    int connection;
    struct message message;
} aside[64];
static int aside_count;

/// Puts a packet aside that is a whole message between two pieces; 0 when it is none.
static int put_aside(int connection, const struct head *head, const uint8_t *payload, size_t length, int descriptors) {
    if (!is_message(head) || head->total != length || descriptors != 0) return 0;
    if (head->kind == MESSAGE && head->answers != 0) return 0;
    if (aside_count == sizeof aside / sizeof aside[0]) fail("very many messages between two pieces");
    struct message message = {.head = *head, .payload = malloc(length + 1), .length = length};
    memcpy(message.payload, payload, length);
    aside[aside_count].connection = connection;
    aside[aside_count++].message = message;
    return 1;
}

/// Closes the read end that a client has sent, which may come between two pieces: this peer counts nothing.
static int drop_presence(const struct head *head, size_t length, const int *fds, int count) {
    if (head->kind != PRESENCE) return 0;
    if (head->descriptors != 1 || count != 1 || length != 0) fail("a lie about a pipe");
    close(fds[0]);
    return 1;
}

/// The place of the connection's first message that was put aside; -1 for none.
static int find_aside(int connection) {
    for (int index = 0; index < aside_count; index++)
        if (aside[index].connection == connection) return index;
    return -1;
}

int has_message(int connection) { return find_aside(connection) >= 0; }

/// How many descriptors come with the next packet of the message; the argument says how many have come.
static int due(const struct message *message, int came) {
    int missing = message->head.descriptors - came;
    return missing < PACKET_DESCRIPTORS ? missing : PACKET_DESCRIPTORS;
}

int next_message(int connection, struct message *message) {
    uint8_t bytes[PACKET_LIMIT];
    size_t length;
    int more[PACKET_DESCRIPTORS], more_count;
    int place = find_aside(connection);
    if (place >= 0) {
        *message = aside[place].message;
        memmove(&aside[place], &aside[place + 1], sizeof aside[0] * (size_t)(--aside_count - place));
        return 1;
    }
    memset(message, 0, sizeof *message);
    if (!receive(connection, bytes, &length, message->descriptors, &message->descriptor_count)) return 0;
    decode_head(bytes, length, &message->head);
    if (drop_presence(&message->head, length - HEAD, message->descriptors, message->descriptor_count))
        return next_message(connection, message);
    if (message->head.descriptors > DESCRIPTOR_LIMIT) fail("very many descriptors");
    if (message->descriptor_count != due(message, 0)) fail("a lie about descriptors");
    if (message->head.kind == RING) {  // this peer wants none
        if (message->descriptor_count < 1 || message->descriptor_count > 2) fail("rings without memory");
        struct head answer = {.kind = RING_ANSWER, .id = 1};
        send_packet(connection, &answer, NULL, 0, NULL, 0);
        free_message(message);
        return next_message(connection, message);
    }
    if (message->head.kind == CONTINUATION || message->head.kind == ABORT) fail("a piece of nothing");
    size_t room = is_message(&message->head) ? message->head.total : length - HEAD;
    message->payload = malloc(room + 1);
    for (;;) {
        if (message->length + length - HEAD > room) fail("more bytes than announced");
        memcpy(message->payload + message->length, bytes + HEAD, length - HEAD);
        message->length += length - HEAD;
        if (is_whole(message)) return 1;
        struct head head;
        do {
            if (!receive(connection, bytes, &length, more, &more_count)) fail("half a message");
            decode_head(bytes, length, &head);
        } while (drop_presence(&head, length - HEAD, more, more_count) || put_aside(connection, &head, bytes + HEAD, length - HEAD, more_count));
        if (head.kind == ABORT) {
            free_message(message);
            return next_message(connection, message);
        }
        if (head.kind != CONTINUATION || length == HEAD) fail("a message within a message");
        if (head.descriptors != more_count || more_count != due(message, message->descriptor_count)) fail("a lie about descriptors");
        memcpy(message->descriptors + message->descriptor_count, more, sizeof more[0] * (size_t)more_count);
        message->descriptor_count += more_count;
    }
}

/// The first record of a kind; its bytes, or NULL.
static const uint8_t *record(const struct message *message, uint8_t kind, size_t *length) {
    for (size_t at = 0; at + 8 <= message->length; at += 8 + *length) {
        *length = (size_t)get(message->payload + at + 4, 4);
        if (*length > message->length - at - 8 || get(message->payload + at + 1, 3) != 0) fail("a broken record");
        if (message->payload[at] == kind) return message->payload + at + 8;
    }
    return NULL;
}

const uint8_t *message_bytes(const struct message *message, size_t *length) {
    const uint8_t *bytes = record(message, BYTES, length);
    if (!bytes) fail("a message without bytes");
    return bytes;
}

int message_address(const struct message *message, uint8_t kind, char address[PATH_LIMIT]) {
    size_t length;
    const uint8_t *bytes = record(message, kind, &length);
    if (!bytes) return 0;
    if (length == 0 || bytes[0] != '/' || length >= PATH_LIMIT) fail("an address that is no path");
    memcpy(address, bytes, length);
    address[length] = 0;
    return 1;
}

void free_message(struct message *message) {
    for (int index = 0; index < message->descriptor_count; index++) close(message->descriptors[index]);
    free(message->payload);
    memset(message, 0, sizeof *message);
}
