// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// The baselines of the benchmarks, in plain system calls, and the counters that Swift cannot have.

#pragma once

#include <stdint.h>
#include <stddef.h>
#include <sys/types.h>

/// Nanoseconds of the monotonic clock.
int64_t bare_now(void);

/// Makes standard output write each line at once, also into a pipe.
void bare_print_by_line(void);

/// The calling thread's number in the kernel.
pid_t bare_thread_id(void);

/// Makes the kernel end this process with its parent, and this process end by itself after that many seconds.
void bare_bound_life(unsigned seconds);

/// Raises the limit of open descriptors to this number, as far as the system allows. Returns the new limit.
int64_t bare_allow_descriptors(uint64_t number);

/// The bytes that malloc has allocated and that were not freed, in all arenas.
size_t bare_heap_bytes(void);

// MARK: - places

/// How many processors this program could use when it started; 0 when the system does not say.
int bare_processor_count(void);

/// Keeps the calling thread, and the threads that it starts from now on, on one processor: the one with this number
/// among those that this program could use when it started, from 0. Does nothing for -1. Returns 0, or an errno.
int bare_bind(int place);

// MARK: - eventfd + epoll, two threads

typedef struct bare_eventfd_pair bare_eventfd_pair;

/// Starts a thread that answers each signal with a signal, at this place unless it is -1; NULL when the system refuses.
bare_eventfd_pair *_Nullable bare_eventfd_start(int place);
/// Signals and waits for the answer, `count` times. `laps` gets the time of each one, unless it is NULL.
int64_t bare_eventfd_run(bare_eventfd_pair *_Nonnull pair, int64_t count, int64_t *_Nullable laps);
void bare_eventfd_end(bare_eventfd_pair *_Nonnull pair);

/// Waits in epoll, as a loop without work does, until the descriptor is readable.
void bare_wait_readable(int descriptor);

/// Makes an eventfd.
int bare_make_eventfd(void);
/// Adds one to an eventfd.
void bare_ring(int descriptor);
/// Reads an eventfd.
void bare_silence(int descriptor);

// MARK: - sockets, two processes

typedef enum bare_socket_kind { bare_packets, bare_stream } bare_socket_kind;

/// Makes a connected pair, close-on-exec. Returns 0, or -1.
int bare_socket_pair(bare_socket_kind kind, int ends[_Nonnull 2]);

/// Sends `there` bytes and waits in epoll for `back` bytes, `count` times: `nested`, in a set within a set, and with a
/// check whether the socket is empty. Returns the nanoseconds; -1 when the other side has gone.
int64_t bare_socket_run(
    int descriptor, int nested, size_t there, size_t back, int64_t count, int64_t *_Nullable laps);
/// The other side, until the end of the stream.
void bare_socket_answer(int descriptor, int nested, size_t there, size_t back);

/// Sends `count` packets of `size` bytes and waits until the other side has reported that it has them all. With a
/// `batch` above one, that many go in one sendmmsg.
int64_t bare_socket_send(int descriptor, size_t size, int64_t count, unsigned batch);
/// The other side, until the end of the stream; it reads with recvmmsg when the batch is above one.
void bare_socket_sink(int descriptor, size_t size, unsigned batch);

/// Copies `size` bytes, `count` times.
int64_t bare_copy_run(size_t size, int64_t count, int64_t *_Nullable laps);

// MARK: - memory that two sides share, neither of which sleeps

typedef struct bare_memory bare_memory;

/// Makes a file of memory for it, close-on-exec; -1 when the system refuses.
int bare_memory_file(void);
/// Maps it; NULL when the system refuses.
bare_memory *_Nullable bare_memory_map(int file);
void bare_memory_unmap(bare_memory *_Nonnull memory);
/// Sends 64 bytes and waits for as many, `count` times.
int64_t bare_memory_run(bare_memory *_Nonnull memory, int64_t count, int64_t *_Nullable laps);
/// Sends 64 bytes, `count` times, and waits until the other side has them all.
int64_t bare_memory_send(bare_memory *_Nonnull memory, int64_t count);
/// The other side, which answers or only reads, until the end.
void bare_memory_serve(bare_memory *_Nonnull memory, int answers);
void bare_memory_end(bare_memory *_Nonnull memory);

// MARK: - large bodies through memory that two sides share, neither of which sleeps

typedef struct bare_body_ring bare_body_ring;

/// Starts a thread at a place that receives bodies of `size` bytes, a multiple of 32 KiB; NULL when the system refuses.
bare_body_ring *_Nullable bare_body_ring_start(int64_t size, int past_caches, int place);
/// Sends a body, and waits until the other side has it, `count` times.
int64_t bare_body_ring_send(bare_body_ring *_Nonnull ring, int64_t count, int64_t *_Nullable laps);
void bare_body_ring_end(bare_body_ring *_Nonnull ring);

// MARK: - bodies that one side writes and the other reads, neither of which sleeps

/// Writes a word to all of `size` bytes, a multiple of eight.
void bare_fill_words(void *_Nullable start, size_t size, uint64_t word);
/// The sum of the words in `size` bytes, a multiple of eight.
uint64_t bare_sum_words(const void *_Nullable start, size_t size);

typedef struct bare_passes bare_passes;

/// Starts a thread at a place that reads bodies of `size` bytes, a multiple of eight, where they were written: in `slots`
/// places in turn. NULL when the system refuses.
bare_passes *_Nullable bare_passes_start(size_t size, size_t slots, int place);
/// Writes a body, and waits until the other side has read it, `count` times.
int64_t bare_passes_run(bare_passes *_Nonnull passes, int64_t count, int64_t *_Nullable laps);
void bare_passes_end(bare_passes *_Nonnull passes);

// MARK: - a list behind a mutex

typedef struct bare_queue bare_queue;

/// Starts a thread that receives all messages; NULL when the system refuses.
bare_queue *_Nullable bare_queue_start(void);
/// Sends 64 bytes in memory of their own, `count` times, and waits until the other side has them all.
int64_t bare_queue_send(bare_queue *_Nonnull queue, int64_t count);
void bare_queue_end(bare_queue *_Nonnull queue);

// MARK: - many at once

typedef struct bare_queue_field bare_queue_field;

/// Starts a thread that receives from `count` queues; NULL when the system refuses.
bare_queue_field *_Nullable bare_queue_field_start(int64_t count);
/// Sends 64 bytes in memory of their own to one queue after the other, `count` times, and waits until the other side
/// has them all.
int64_t bare_queue_field_send(bare_queue_field *_Nonnull queues, int64_t count);
void bare_queue_field_end(bare_queue_field *_Nonnull queues);

/// Serves `count` connections of client processes, up to a hundred each, until the socket's other side ends. Reports 0
/// over it when they are made, or the error. Then each order is a number of packets of 64 bytes, in eight bytes: receives
/// as many, and reports the nanoseconds that took.
void bare_socket_field_serve(int socket, int count);

/// How long the first and the last of many packets took, in nanoseconds; or why they did not come.
typedef struct {
    int64_t first, last, error;
} bare_first_packets;

/// Starts client processes, up to a hundred, which all connect at once, each to all listeners, up to a hundred, and send a
/// packet of 64 bytes over each connection. A thread accepts and receives them. Reports over the socket when the first
/// and the last came, from the start of the first client.
void bare_connecting_serve(int socket, int listeners, int clients);

// MARK: - counting

/// Begins to count the calls of malloc and its like, on all threads.
void bare_allocations_begin(void);
/// Ends the count, and returns it.
int64_t bare_allocations_end(void);

/// Makes a counter of the system calls of this process, of future threads too. Returns whether it could.
int bare_counter_open(void);
/// Begins to count.
void bare_counter_begin(void);
/// How many calls there were since; -1 when that is not known.
int64_t bare_counter_end(void);

/// In a traced process: begins to count.
void bare_calls_begin(void);
/// In a traced process: ends the count, for this number of messages.
void bare_calls_end(int64_t messages);

/// The calls of a traced process between its marks.
typedef struct bare_call_count {
    int64_t calls;
    int64_t messages;
} bare_call_count;

/// Runs a program under ptrace and counts the system calls of all its threads between the marks. Returns 0, or an errno
/// when the system does not allow tracing, or the program did not reach its marks.
int bare_calls_trace(char *_Nullable const *_Nonnull arguments, bare_call_count *_Nonnull result);
