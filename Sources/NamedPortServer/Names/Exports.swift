// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Whoever names ports also makes them: one import gives names, ports and run loops.
@_exported public import MessagePort
