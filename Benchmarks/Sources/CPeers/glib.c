// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#ifdef PORTBENCH_PEERS

#include "common.h"
#include <glib.h>

typedef struct loop_pair {
    GMainContext *near, *far;
    GMainLoop *near_loop, *far_loop;
    GThread *thread;
    int64_t left, done, last, *laps;
} loop_pair;

static gpointer run_far(gpointer context) {
    loop_pair *pair = context;
    g_main_context_push_thread_default(pair->far);
    g_main_loop_run(pair->far_loop);
    g_main_context_pop_thread_default(pair->far);
    return NULL;
}

static void *start(size_t size, peer_places places) {
    (void)size;
    (void)places;
    loop_pair *pair = g_new0(loop_pair, 1);
    pair->near = g_main_context_new();
    pair->far = g_main_context_new();
    pair->near_loop = g_main_loop_new(pair->near, FALSE);
    pair->far_loop = g_main_loop_new(pair->far, FALSE);
    pair->thread = g_thread_new("far", run_far, pair);
    return pair;
}

static gboolean answer(gpointer context);

static gboolean arrived(gpointer context) {
    loop_pair *pair = context;
    if (pair->laps) pair->last = lap(pair->laps, pair->done, pair->last);
    pair->done++;
    if (pair->done == pair->left) g_main_loop_quit(pair->near_loop);
    else g_main_context_invoke(pair->far, answer, pair);
    return G_SOURCE_REMOVE;
}

static gboolean answer(gpointer context) {
    loop_pair *pair = context;
    g_main_context_invoke(pair->near, arrived, pair);
    return G_SOURCE_REMOVE;
}

static int64_t run_roundtrips(void *context, int64_t count, int64_t *laps) {
    loop_pair *pair = context;
    int64_t start = now();
    pair->left = count;
    pair->done = 0;
    pair->laps = laps;
    pair->last = start;
    g_main_context_push_thread_default(pair->near);
    g_main_context_invoke(pair->far, answer, pair);
    g_main_loop_run(pair->near_loop);
    g_main_context_pop_thread_default(pair->near);
    return now() - start;
}

typedef struct parcel {
    loop_pair *pair;
    char bytes[packet_size];
} parcel;

static gboolean all_there(gpointer context) {
    g_main_loop_quit(((loop_pair *)context)->near_loop);
    return G_SOURCE_REMOVE;
}

static gboolean deliver(gpointer context) {
    parcel *got = context;
    loop_pair *pair = got->pair;
    g_free(got);
    if (++pair->done == pair->left) g_main_context_invoke(pair->near, all_there, pair);
    return G_SOURCE_REMOVE;
}

static int64_t run_stream(void *context, int64_t count, int64_t *laps) {
    (void)laps;
    loop_pair *pair = context;
    pair->left = count;
    pair->done = 0;
    int64_t start = now();
    g_main_context_push_thread_default(pair->near);
    for (int64_t i = 0; i < count; i++) {
        parcel *made = g_new0(parcel, 1);
        made->pair = pair;
        g_main_context_invoke(pair->far, deliver, made);
    }
    g_main_loop_run(pair->near_loop);
    g_main_context_pop_thread_default(pair->near);
    return now() - start;
}

static void finish(void *context) {
    loop_pair *pair = context;
    g_main_loop_quit(pair->far_loop);
    g_thread_join(pair->thread);
    g_main_loop_unref(pair->near_loop);
    g_main_loop_unref(pair->far_loop);
    g_main_context_unref(pair->near);
    g_main_context_unref(pair->far);
    g_free(pair);
}

const peer glib_peers[] = {
    [peer_roundtrip] = {"GLib invoke", start, run_roundtrips, finish, 1},
    [peer_oneway] = {"GLib invoke", start, run_stream, finish, 0},
};

#endif
