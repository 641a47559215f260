// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include "bare_calls.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/// As `bare_bind`, for any thread.
int bare_bind_thread(pthread_t thread, int place);
