// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
