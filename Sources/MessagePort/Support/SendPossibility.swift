// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Why somebody who waits for room at a port is told. `MACH_NOTIFY_SEND_POSSIBLE`, `MACH_NOTIFY_DEAD_NAME`.
public enum SendPossibility: Hashable, Sendable {
    /// There was room when this was said. Others may be quicker; then ask again.
    case possible
    /// The port is gone: there will never be room.
    case deadName
}
