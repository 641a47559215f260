// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Method calls of sd-bus with an array of bytes, answered with 64, with and without a bus between the two processes.

#pragma once

#include "common.h"
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

/// This side's connection, and which service it asks: NULL without a bus between.
typedef struct sdbus_caller {
    sd_bus *bus;
    const char *destination;
    /// What a call carries.
    void *bytes;
    size_t size;
} sdbus_caller;

int64_t sdbus_run(void *caller, int64_t count, int64_t *laps);
/// Makes calls with `size` bytes answered on a connection.
int sdbus_add_method(sd_bus *bus, const size_t *size);
