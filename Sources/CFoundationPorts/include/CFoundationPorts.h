// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The class CFMessagePort of CoreFoundation's runtime. CoreFoundation's own headers are not available to a C target of a
// package, so what is used of them is declared here and in port_class.c.

#ifndef CFOUNDATION_PORTS_H
#define CFOUNDATION_PORTS_H

#include <stdbool.h>
#include <stdint.h>

/// What the class does with an object's body.
typedef struct {
    /// The object is being destroyed: releases the body.
    void (*_Nonnull finalize)(void *_Nonnull body);
    /// Returns a CFString, retained.
    const void *_Nullable (*_Nonnull copyDescription)(void *_Nonnull body);
} FPPortClass;

/// The class's type id. The first call, of any of these functions, registers the class with these functions.
unsigned long fp_port_type(const FPPortClass *_Nonnull functions);

/// A new object, retained, with a body that it owns; NULL without memory: then the body is the caller's.
const void *_Nullable fp_port_create(unsigned long type, const void *_Nullable allocator, void *_Nonnull body);

/// The body of an object of the class.
void *_Nullable fp_port_body(const void *_Nonnull port);

/// A queue for blocks, one after the other, whose blocks run on `target`, a `dispatch_queue_t`.
///
/// Reports on it that a descriptor is readable, from `fp_queue_source_start` until `fp_queue_source_cancel`. Calls
/// `released` once after both, when the descriptor is no longer used. Returns NULL when there is no memory. The caller
/// calls start and cancel, in either order, each once or more, and then `fp_queue_source_release`.
void *_Nullable fp_queue_source_create(
    int descriptor, void *_Nonnull target, void *_Nonnull context, void (*_Nonnull readable)(void *_Nonnull context),
    void (*_Nonnull released)(void *_Nonnull context));
void fp_queue_source_start(void *_Nonnull source);
void fp_queue_source_cancel(void *_Nonnull source);
void fp_queue_source_release(void *_Nonnull source);

/// Whether the main thread has ended, or waits in `dispatch_main`, so that other threads serve the main queue: for good.
///
/// Otherwise calls `when_free` on the main queue once that is so. All calls must give the same function.
bool fp_main_queue_is_free(void (*_Nonnull when_free)(void));

#endif
