// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// The most that a message to another process may hold.
public enum MessageLimits {
    /// The most bytes of a message's components together, with eight bytes for each component: 1.5 GiB.
    ///
    /// Beyond it: ``PortError/Code/messageTooLarge``. A port accepts less, unless it says otherwise: see
    /// ``PeerLimits/messageBytes``. Within a process there is no limit but memory.
    ///
    /// - Important: Source of the behaviour: CFMessagePort's limit, `0x60000000`.
    public static let payload = 0x6000_0000

    /// The most components: 65,536. Beyond it: ``PortError/Code/messageTooLarge``.
    public static let components = 65_536

    /// The most rights, the reply port included: 253. Each becomes a connection when it is used.
    ///
    /// Beyond it: ``PortError/Code/messageTooLarge``.
    public static let rights = 253

    /// The most descriptors: 500. The kernel passes at most 253 with one packet (`SCM_MAX_FD`); a message with more is
    /// sent in several, all or none.
    ///
    /// Beyond it: ``PortError/Code/tooManyDescriptors``. The receiving process may have fewer to spare for a message, or
    /// for this process: a quarter of its own limit (`RLIMIT_NOFILE`), and ``PeerLimits/queuedDescriptors``.
    public static let descriptors = 500
}
