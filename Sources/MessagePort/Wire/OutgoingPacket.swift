// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// One packet, as it is offered to the kernel.
struct OutgoingPacket: Sendable {
    var header: PacketHeader
    /// The payload's first eight bytes, in memory order; nil when they are in `payload`.
    var lead: UInt64?
    var payload: ArraySlice<UInt8> = []
    /// The end of the payload.
    var tail: ArraySlice<UInt8> = []
    var descriptors: [SharedDescriptor] = []

    /// The size of the payload.
    var payloadSize: Int { (lead == nil ? 0 : ComponentKind.headSize) + payload.count + tail.count }
}
