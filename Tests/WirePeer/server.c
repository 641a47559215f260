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
        if (!message_address(request, SEND_RIGHT, address)) fail("no right in the message");
        int other = connect_to(address);
        if (other < 0) fail("the right leads nowhere");
        send_bytes(other, 102, 0, 0, "hello", 5);
        close(other);
        break;
    }
    default: printf("message %d\n", request->head.id); fflush(stdout);
    }
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
            struct message request;
            if (!watched[index].revents) continue;
            if (next_message(watched[index].fd, &request)) {
                if (request.head.kind == MESSAGE) answer(watched[index].fd, &request);
                else if (request.head.kind != ABANDONED) fail("a packet of kind %d", request.head.kind);
                free_message(&request);
            } else {
                close(watched[index].fd);
                watched[index] = watched[--count];
            }
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
