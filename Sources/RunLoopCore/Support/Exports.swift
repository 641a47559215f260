// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Clients need `MonotonicInstant`, `SystemError` and `SharedDescriptor`; everything else in PortSystem has package
// access.
@_exported public import PortSystem
