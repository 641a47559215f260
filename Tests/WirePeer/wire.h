// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The wire format of Docs/WireFormat.md, written from that page alone, in C. It shares no code with the library, so
// that the page is all that another implementation needs. It ends the process with a sentence at whatever is not as the
// page says, and waits for nothing longer than its timeout.

#ifndef WIRE_H
#define WIRE_H

#include <stddef.h>
#include <stdint.h>

enum { VERSION = 2 };
enum { HEAD = 40, PACKET_LIMIT = 65536, PIECE = PACKET_LIMIT - HEAD, PATH_LIMIT = 4096 };
enum { PACKET_DESCRIPTORS = 253, DESCRIPTOR_LIMIT = 500 };
enum { MESSAGE = 1, CONTINUATION, REPLY_DROPPED, ABORT, REFUSED, REPLY_FAILED, ABANDONED, PORT_ENDED, RING, RING_ANSWER, CREDIT = 16, CONFIRMED, PROBE, PROBE_ANSWER, PRESENCE };
enum { BYTES = 1, SEND_RIGHT, DESCRIPTOR, REPLY_PORT, COUNTED_RIGHT, COUNTED_REPLY_PORT, SHARED_RIGHT };

struct head {
    uint8_t kind;
    uint16_t descriptors;
    int32_t id;
    uint32_t components;
    uint64_t asks, answers, total;
};

/// A packet, or the packets of one message put together.
struct message {
    struct head head;
    uint8_t *payload;
    size_t length;
    int descriptors[DESCRIPTOR_LIMIT];
    int descriptor_count;
};

/// Ends the process with a sentence.
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

void encode_head(uint8_t out[HEAD], const struct head *head);

/// Sends one packet; 0 when the peer is gone.
int send_packet(int connection, const struct head *head, const void *payload, size_t length, const int *fds, int count);
/// Sends bytes as they are; 0 when the peer is gone.
int send_raw(int connection, const void *bytes, size_t length, const int *fds, int count);
/// Sends a message with one component of bytes, in as many packets as it needs.
int send_bytes(int connection, int32_t id, uint64_t asks, uint64_t answers, const void *bytes, size_t length);
/// The next message, or packet of another kind; 0 at the end of the connection. The caller frees it.
int next_message(int connection, struct message *message);
/// Whether a message is here that came between the pieces of the last one.
int has_message(int connection);
/// The first component of bytes; its length in `length`. Ends the process when there is none.
const uint8_t *message_bytes(const struct message *message, size_t *length);
/// The address in the record of a kind; 0 when there is none.
int message_address(const struct message *message, uint8_t kind, char address[PATH_LIMIT]);
/// Appends a record to a payload; the new length.
size_t put_record(uint8_t *payload, size_t at, uint8_t kind, const void *bytes, uint32_t length);
void free_message(struct message *message);

/// Connects to the port of a name; the connection, or -1 when the name is unknown.
int look_up(const char *directory, const char *name);
int connect_to(const char *address);
/// Makes a listening socket with an address in the directory.
int listen_in(const char *directory, char address[PATH_LIMIT]);
/// Registers a name for an address; 0 when it is in use.
int hold_name(const char *directory, const char *name, const char *address);
/// Frees the name, and removes the socket and its lock file.
void let_go(void);

int accept_one(int listener);
/// Waits until there is something to read.
void await_readable(int descriptor);

int run_client(const char *directory, const char *name);
int run_server(const char *directory, const char *name);
int run_hostile(const char *directory, const char *name, const char *act);

#endif
