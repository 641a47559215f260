// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// One packet, as it is offered to the kernel.
struct OutgoingPacket: Sendable {
    var header: PacketHeader
    /// The payload's first eight bytes, as they lie in memory, unless they are among the others.
    var lead: UInt64?
    var payload: ArraySlice<UInt8> = []
    /// The end of the payload.
    var tail: ArraySlice<UInt8> = []
    var descriptors: [SharedDescriptor] = []

    /// The bytes of the payload.
    var payloadSize: Int { (lead == nil ? 0 : ComponentKind.headSize) + payload.count + tail.count }
}
