// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Programs that name ports also make them: one import gives names, ports and run loops.
@_exported public import MessagePort
