// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// A program that talks through ports also runs run loops: one import gives both.
@_exported public import RunLoopCore
