// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Counts the memory that a program asks for. Under a sanitizer, which has an allocator of its own, nothing is counted.

#pragma once

/* Whether allocations are counted here. */
int allocations_are_counted(void);
/* How many there were since the program began, of all threads. */
long allocation_count(void);
