// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Messages of 64 bytes, each in memory of its own, through a list that a mutex guards: the least that a queue of
// messages of any size does. Neither side sleeps.

#include "common.h"

enum { places = 1024, batch = 32, message = 64 };

struct bare_queue {
    pthread_mutex_t lock;
    pthread_t thread;
    void *list[places];
    uint64_t sent, taken;
    int ends;
    bare_gate gate;
};

/// Dequeues up to `batch` of the oldest. Returns how many; -1 at the end.
static int take_some(bare_queue *queue, void **some) {
    int count = 0;
    pthread_mutex_lock(&queue->lock);
    while (count < batch && queue->taken < queue->sent) some[count++] = queue->list[queue->taken++ % places];
    if (count == 0 && queue->ends) count = -1;
    pthread_mutex_unlock(&queue->lock);
    return count;
}

static void *receive(void *context) {
    bare_queue *queue = context;
    void *some[batch];
    unsigned polls = 0;
    int count;
    while ((count = take_some(queue, some)) >= 0) {
        for (int index = 0; index < count; index++) free(some[index]);
        if (count > 0) {
            polls = 0;
            continue;
        }
        bare_poll_again(&polls);
        bare_gate_pass(&queue->gate);
    }
    return NULL;
}

bare_queue *bare_queue_start(void) {
    bare_queue *queue = calloc(1, sizeof *queue);
    if (!queue) return NULL;
    pthread_mutex_init(&queue->lock, NULL);
    if (pthread_create(&queue->thread, NULL, receive, queue) == 0) return queue;
    free(queue);
    return NULL;
}

/// Returns how many wait, this one among them; -1 when the list is full.
static int64_t put(bare_queue *queue, void *bytes) {
    int64_t waiting = -1;
    pthread_mutex_lock(&queue->lock);
    if (queue->sent - queue->taken < places) {
        if (bytes) queue->list[queue->sent++ % places] = bytes;
        waiting = (int64_t)(queue->sent - queue->taken);
    }
    pthread_mutex_unlock(&queue->lock);
    return waiting;
}

int64_t bare_queue_send(bare_queue *queue, int64_t count) {
    bare_gate_open(&queue->gate);
    int64_t start = bare_now();
    unsigned polls = 0;
    for (int64_t i = 0; i < count; i++) {
        char *bytes = malloc(message);
        if (!bytes) abort();
        memset(bytes, 7, message);
        for (polls = 0; put(queue, bytes) < 0;) bare_poll_again(&polls);
    }
    while (put(queue, NULL) != 0) bare_poll_again(&polls);
    int64_t time = bare_now() - start;
    bare_gate_close(&queue->gate);
    return time;
}

void bare_queue_end(bare_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    queue->ends = 1;
    pthread_mutex_unlock(&queue->lock);
    bare_gate_open(&queue->gate);
    pthread_join(queue->thread, NULL);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}
