// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#ifdef PORTBENCH_PEERS

#include "common.h"
#include <uv.h>

typedef struct loop_pair {
    uv_loop_t near, far;
    uv_async_t near_bell, far_bell;
    pthread_t thread;
    int ends;
    int64_t left, done, last, *laps;
} loop_pair;

static void answer(uv_async_t *bell) {
    loop_pair *pair = bell->data;
    if (__atomic_load_n(&pair->ends, __ATOMIC_ACQUIRE)) uv_close((uv_handle_t *)bell, NULL);
    else uv_async_send(&pair->near_bell);
}

static void arrived(uv_async_t *bell) {
    loop_pair *pair = bell->data;
    if (__atomic_load_n(&pair->ends, __ATOMIC_ACQUIRE)) return uv_close((uv_handle_t *)bell, NULL);
    if (pair->laps) pair->last = lap(pair->laps, pair->done, pair->last);
    pair->done++;
    if (pair->done == pair->left) uv_stop(&pair->near);
    else uv_async_send(&pair->far_bell);
}

static void *run_far(void *context) {
    loop_pair *pair = context;
    uv_run(&pair->far, UV_RUN_DEFAULT);
    uv_loop_close(&pair->far);
    return NULL;
}

static void *start(size_t size, peer_places places) {
    (void)size;
    (void)places;
    loop_pair *pair = calloc(1, sizeof *pair);
    uv_loop_init(&pair->near);
    uv_loop_init(&pair->far);
    uv_async_init(&pair->near, &pair->near_bell, arrived);
    uv_async_init(&pair->far, &pair->far_bell, answer);
    pair->near_bell.data = pair;
    pair->far_bell.data = pair;
    return pthread_create(&pair->thread, NULL, run_far, pair) == 0 ? pair : NULL;
}

static int64_t run(void *context, int64_t count, int64_t *laps) {
    loop_pair *pair = context;
    int64_t start = now();
    pair->left = count;
    pair->done = 0;
    pair->laps = laps;
    pair->last = start;
    uv_async_send(&pair->far_bell);
    uv_run(&pair->near, UV_RUN_DEFAULT);
    return now() - start;
}

static void finish(void *context) {
    loop_pair *pair = context;
    __atomic_store_n(&pair->ends, 1, __ATOMIC_RELEASE);
    uv_async_send(&pair->far_bell);
    pthread_join(pair->thread, NULL);
    uv_async_send(&pair->near_bell);
    uv_run(&pair->near, UV_RUN_DEFAULT);
    uv_loop_close(&pair->near);
    free(pair);
}

const peer libuv_peers[] = {[peer_roundtrip] = {"libuv async", start, run, finish, 1}};

#endif
