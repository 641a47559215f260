// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Messages of 64 bytes, each in memory of its own, to many queues, each guarded by a mutex. A list names the queues
// that have messages: the least that a loop with many ports does. Neither side sleeps.

#include "common.h"

enum { places = 1024, depth = 32, batch = 32, message = 64, step = 7919 };

/// About as large as a port.
typedef struct place {
    pthread_mutex_t lock;
    unsigned sent, taken;
    void *list[depth];
    char rest[160];
} place;

struct bare_queue_field {
    pthread_mutex_t lock;
    pthread_t thread;
    place *field;
    int64_t count, next;
    int64_t ready[places];
    uint64_t sent, taken;
    int ends;
    bare_gate gate;
};

/// Dequeues the indices of the oldest. Returns how many; -1 at the end.
static int take_some(bare_queue_field *queues, int64_t *some) {
    int count = 0;
    pthread_mutex_lock(&queues->lock);
    while (count < batch && queues->taken < queues->sent) some[count++] = queues->ready[queues->taken++ % places];
    if (count == 0 && queues->ends) count = -1;
    pthread_mutex_unlock(&queues->lock);
    return count;
}

static void *take(place *place) {
    pthread_mutex_lock(&place->lock);
    void *bytes = place->list[place->taken++ % depth];
    pthread_mutex_unlock(&place->lock);
    return bytes;
}

/// Returns whether there was room.
static int give(place *place, void *bytes) {
    pthread_mutex_lock(&place->lock);
    int has_room = place->sent - place->taken < depth;
    if (has_room) place->list[place->sent++ % depth] = bytes;
    pthread_mutex_unlock(&place->lock);
    return has_room;
}

static void *receive(void *context) {
    bare_queue_field *queues = context;
    int64_t some[batch];
    unsigned polls = 0;
    int count;
    while ((count = take_some(queues, some)) >= 0) {
        for (int index = 0; index < count; index++) free(take(&queues->field[some[index]]));
        if (count > 0) {
            polls = 0;
            continue;
        }
        bare_poll_again(&polls);
        bare_gate_pass(&queues->gate);
    }
    return NULL;
}

bare_queue_field *bare_queue_field_start(int64_t count) {
    bare_queue_field *queues = calloc(1, sizeof *queues);
    place *field = calloc((size_t)count, sizeof *field);
    if (!queues || !field) {
        free(field);
        free(queues);
        return NULL;
    }
    queues->field = field;
    queues->count = count;
    pthread_mutex_init(&queues->lock, NULL);
    for (int64_t index = 0; index < count; index++) pthread_mutex_init(&field[index].lock, NULL);
    if (pthread_create(&queues->thread, NULL, receive, queues) == 0) return queues;
    free(field);
    free(queues);
    return NULL;
}

/// Returns how many wait, this one among them; -1 when the list is full.
static int64_t put(bare_queue_field *queues, int64_t index) {
    int64_t waiting = -1;
    pthread_mutex_lock(&queues->lock);
    if (queues->sent - queues->taken < places) {
        if (index >= 0) queues->ready[queues->sent++ % places] = index;
        waiting = (int64_t)(queues->sent - queues->taken);
    }
    pthread_mutex_unlock(&queues->lock);
    return waiting;
}

int64_t bare_queue_field_send(bare_queue_field *queues, int64_t count) {
    bare_gate_open(&queues->gate);
    int64_t start = bare_now();
    unsigned polls = 0;
    for (int64_t i = 0; i < count; i++) {
        // Not in the order of their addresses in memory.
        queues->next = (queues->next + step) % queues->count;
        char *bytes = malloc(message);
        if (!bytes) abort();
        memset(bytes, 7, message);
        for (polls = 0; !give(&queues->field[queues->next], bytes);) bare_poll_again(&polls);
        for (polls = 0; put(queues, queues->next) < 0;) bare_poll_again(&polls);
    }
    while (put(queues, -1) != 0) bare_poll_again(&polls);
    int64_t time = bare_now() - start;
    bare_gate_close(&queues->gate);
    return time;
}

void bare_queue_field_end(bare_queue_field *queues) {
    pthread_mutex_lock(&queues->lock);
    queues->ends = 1;
    pthread_mutex_unlock(&queues->lock);
    bare_gate_open(&queues->gate);
    pthread_join(queues->thread, NULL);
    free(queues->field);
    free(queues);
}
