// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A queue that C code has is a dispatch_queue_t, of which Swift's overlay on Linux makes no DispatchQueue.

#include "CFoundationPorts.h"

#include <stddef.h>
#include <stdlib.h>

// As libdispatch declares them; its headers need blocks.
extern void *dispatch_queue_create_with_target(const char *label, void *attributes, void *target);
extern void *dispatch_source_create(const void *type, uintptr_t handle, unsigned long mask, void *queue);
extern void dispatch_source_set_event_handler_f(void *source, void (*handler)(void *));
extern void dispatch_source_set_cancel_handler_f(void *source, void (*handler)(void *));
extern void dispatch_set_context(void *object, void *context);
extern void dispatch_source_cancel(void *source);
extern void dispatch_activate(void *object);
extern void dispatch_release(void *object);
extern const char _dispatch_source_type_read[];

void *fp_queue_source_create(
    int descriptor, void *target, void *context, void (*readable)(void *context), void (*released)(void *context)) {
    void *queue = dispatch_queue_create_with_target("CFMessagePort", NULL, target);
    if (queue == NULL) return NULL;
    void *source = dispatch_source_create(_dispatch_source_type_read, (uintptr_t)descriptor, 0, queue);
    dispatch_release(queue);  // the source retains it
    if (source == NULL) return NULL;
    dispatch_set_context(source, context);
    dispatch_source_set_event_handler_f(source, readable);
    dispatch_source_set_cancel_handler_f(source, released);
    return source;
}

void fp_queue_source_start(void *source) { dispatch_activate(source); }

void fp_queue_source_cancel(void *source) { dispatch_source_cancel(source); }

void fp_queue_source_release(void *source) { dispatch_release(source); }
