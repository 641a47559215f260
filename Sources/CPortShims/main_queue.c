/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the swift-message-port authors
 *
 * The two functions of libdispatch through which a run loop of the main thread serves the main queue, as CoreFoundation
 * does. libdispatch exports them for that purpose but declares them in no public header. The Swift runtime links
 * libdispatch into every program with Swift concurrency, so this adds no dependency. */
#include "CPortShims.h"

extern int _dispatch_get_main_queue_handle_4CF(void);
extern void _dispatch_main_queue_callback_4CF(void *ignored);

int shim_main_queue_descriptor(void) { return _dispatch_get_main_queue_handle_4CF(); }

void shim_main_queue_serve(void) { _dispatch_main_queue_callback_4CF(NULL); }
