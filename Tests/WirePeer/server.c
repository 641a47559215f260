// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#include "wire.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CLIENTS = 16 };

static void answer(int connection, struct message *request) {
    struct head head = {.answers = request->head.asks};
    size_t length;
    switch (request->head.id) {
    case 1: {  // the bytes in reverse
        const uint8_t *bytes = message_bytes(request, &length);
        uint8_t *reversed = malloc(length + 1);
        for (size_t index = 0; index < length; index++) reversed[index] = bytes[length - 1 - index];
        send_bytes(connection, 1, 0, request->head.asks, reversed, length);
        free(reversed);
        break;
    }
    case 2:  // no reply will come
        head.kind = REPLY_DROPPED;
        send_packet(connection, &head, NULL, 0, NULL, 0);
        break;
    case 3:  // an error
        head.kind = REPLY_FAILED;
        head.id = 5;
        send_packet(connection, &head, "full", 4, NULL, 0);
        break;
    case 5:  // writes to the descriptor
        if (request->descriptor_count != 1 || write(request->descriptors[0], "hello", 5) != 5) fail("no descriptor");
        send_bytes(connection, 5, 0, request->head.asks, "", 0);
        break;
    case 7: {  // says so to the port in the message
        char address[PATH_LIMIT];
        if (!message_address(request, SEND_RIGHT, address) && !message_address(request, COUNTED_RIGHT, address)) fail("no right in the message");
        int other = connect_to(address);
        if (other < 0) fail("the right leads nowhere");
        send_bytes(other, 102, 0, 0, "hello", 5);
        close(other);
        break;
    }
    default: printf("message %d\n", request->head.id); fflush(stdout);
    }
}

/// A sender asks for room: it may send as far as the connection has some. The number of a connection needs no answer.
static void answer_credit(int client, const struct head *question) {
    struct head head = {.kind = CREDIT, .components = 5, .answers = question->asks};
    if (question->components) send_packet(client, &head, 0, 0, 0, 0);
}

/// A message whose sender wants to know that it is queued, taken or handled: it is all that now.
static void confirm(int connection, struct message *message) {
    struct head head = {.kind = MESSAGE, .answers = message->head.asks};
    answer(connection, message);
    send_packet(connection, &head, NULL, 0, NULL, 0);
}

/// Handles what has come over a connection; 0 at its end.
static int handle(int connection) {
    struct message request;
    do {
        if (!next_message(connection, &request)) return 0;
        if (request.head.kind == MESSAGE) answer(connection, &request);
        else if (request.head.kind == CONFIRMED) confirm(connection, &request);
        else if (request.head.kind == CREDIT) answer_credit(connection, &request.head);
        /* A probe need not be answered: this server runs. */
        else if (request.head.kind != ABANDONED && request.head.kind != PROBE) fail("a packet of kind %d", request.head.kind);
        free_message(&request);
    } while (has_message(connection));
    return 1;
}

/// Serves until its input ends, then ends in order.
int run_server(const char *directory, const char *name) {
    char address[PATH_LIMIT];
    struct pollfd watched[CLIENTS + 2];
    int count = 2;
    int listener = listen_in(directory, address);
    if (!hold_name(directory, name, address)) {
        let_go();
        printf("taken\n");
        return 0;
    }
    printf("ready\n");
    fflush(stdout);
    watched[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    watched[1] = (struct pollfd){.fd = listener, .events = POLLIN};
    while (poll(watched, (nfds_t)count, 60000) > 0) {
        for (int index = count - 1; index >= 2; index--) {
            if (!watched[index].revents || handle(watched[index].fd)) continue;
            close(watched[index].fd);
            watched[index] = watched[--count];
        }
        if (watched[1].revents && count < CLIENTS + 2)
            watched[count++] = (struct pollfd){.fd = accept_one(listener), .events = POLLIN};
        if (watched[0].revents) {
            let_go();
            return 0;
        }
    }
    fail("no client came");
}
