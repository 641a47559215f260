// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// dispatch_main() ends the main thread, as far as its thread-specific values are concerned, and gives the main queue to
// other threads. A run loop of the main thread never runs after that.

#define _GNU_SOURCE
#include "CFoundationPorts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

// As libdispatch has it for CoreFoundation: the descriptor with which the main queue wakes the main run loop; -1 when
// other threads serve the queue.
extern int _dispatch_get_main_queue_port_4CF(void) __attribute__((weak));
extern struct dispatch_queue_s _dispatch_main_q;
extern void dispatch_async_f(void *queue, void *context, void (*work)(void *));

static void (*_Atomic handler)(void);
static atomic_bool has_ended;
static atomic_bool has_key;
static pthread_key_t key;

static void call_handler(void *context) {
    (void)context;
    void (*called)(void) = handler;
    if (called != NULL) called();
}

// A thread-specific value of the main thread is destroyed.
static void main_thread_ended(void *value) {
    (void)value;
    has_ended = true;
    // Runs when other threads serve the queue.
    dispatch_async_f(&_dispatch_main_q, NULL, call_handler);
}

// Called on any thread; does something on the main thread only.
static void watch_main_thread(void) {
    if (gettid() != getpid() || has_key) return;
    if (pthread_key_create(&key, main_thread_ended) != 0) return;
    has_key = true;
    pthread_setspecific(key, &key);
}

// The main thread loads the program's libraries, nearly always.
__attribute__((constructor)) static void start(void) { watch_main_thread(); }

bool fp_main_queue_is_free(void (*when_free)(void)) {
    handler = when_free;
    watch_main_thread();
    if (has_ended) return true;
    return _dispatch_get_main_queue_port_4CF != NULL && _dispatch_get_main_queue_port_4CF() < 0;
}
